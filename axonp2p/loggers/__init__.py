"""What a training's rounds are for TensorBoard, Weights & Biases and MLflow, by their own libraries, which are extras."""
