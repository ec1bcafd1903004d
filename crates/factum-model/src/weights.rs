//! Weights in Safetensors, checked strictly and turned bit for bit into a GGUF file.
