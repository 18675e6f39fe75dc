"""What simple classifiers make of the data of an image model."""
