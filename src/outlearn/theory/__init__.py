"""The theory: replica results for every learner of the family."""
