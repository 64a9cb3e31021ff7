"""A training's rounds for TensorBoard, Weights & Biases and MLflow, by their own libraries, which are extras."""
