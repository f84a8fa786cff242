"""Offline post-mortem analysis of DeepSpeed and PyTorch distributed training runs."""
