"""Language rules without a model: sentences, refusals, courtesies."""
