"""What is evaluated and what comes out. No input or output happens here."""
