"""What follows from the words alone, in many languages: sentences, refusals, courtesies."""
