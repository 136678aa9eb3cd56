"""What can be told from the words alone, in many languages: sentences, refusals, courtesies."""
