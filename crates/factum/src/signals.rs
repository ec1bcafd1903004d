//! Requests to stop, by the keyboard or by whoever runs the program.

use tokio_util::sync::CancellationToken;

/// A token that is cancelled when the program is asked to stop.
pub(crate) fn stop_token() -> CancellationToken {
    let cancel = CancellationToken::new();
    let raised = cancel.clone();
    tokio::spawn(async move {
        if asked_to_stop().await {
            raised.cancel();
        }
    });
    cancel
}

/// Waits until the program is asked to stop: by Ctrl-C, or by SIGTERM, which jobs are ended with. False where neither can be
/// listened for.
pub(crate) async fn asked_to_stop() -> bool {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            return tokio::select! {
                by_keyboard = tokio::signal::ctrl_c() => by_keyboard.is_ok(),
                came = terminate.recv() => came.is_some(),
            };
        }
    }
    tokio::signal::ctrl_c().await.is_ok()
}
