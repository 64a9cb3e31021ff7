"""Rounds of a training, or copies of a command, for TensorBoard, W&B and MLflow, by their own libraries: extras."""
