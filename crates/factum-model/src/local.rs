//! Models in this process, by llama.cpp.

use std::sync::OnceLock;

use llama_cpp_2::llama_backend::LlamaBackend;

use crate::error::ModelError;

/// llama.cpp's own start, once in a process; its chatter is not passed on.
///
/// # Errors
/// [`ModelError::Engine`]: something else in the process has started it.
pub fn backend() -> Result<&'static LlamaBackend, ModelError> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    BACKEND
        .get_or_init(|| {
            let mut backend = LlamaBackend::init().map_err(|error| error.to_string())?;
            backend.void_logs();
            Ok(backend)
        })
        .as_ref()
        .map_err(|error| ModelError::Engine(error.clone()))
}
