"""Cases and results, with what both need. No input or output happens here."""
