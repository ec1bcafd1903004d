//! Leave to begin. Many requests are handed over at once and wait for their turn; a caller who may have to take
//! some back meanwhile is asked about each before any of it is read, and again before it is sent again.
//! It knows nothing of why a caller says no.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::generator::Control;

/// The generator's side.
#[derive(Debug, Clone)]
pub struct Gate(UnboundedSender<Knock>);

/// The caller's side. Once it is gone, nothing is begun any more.
pub type Knocks = UnboundedReceiver<Knock>;

/// A generator asks whether a request may be begun.
#[derive(Debug)]
pub struct Knock {
    /// The request's place.
    pub request: usize,
    reply: oneshot::Sender<bool>,
}

impl Knock {
    /// Says whether it may. A knock that is dropped says no.
    pub fn answer(self, admitted: bool) {
        // A request that was cancelled meanwhile waits for no answer.
        let _ = self.reply.send(admitted);
    }
}

impl Gate {
    /// A gate and the side that answers at it.
    pub fn new() -> (Self, Knocks) {
        let (sender, knocks) = unbounded_channel();
        (Self(sender), knocks)
    }

    fn knock(&self, request: usize) -> Option<oneshot::Receiver<bool>> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Knock { request, reply }).ok().map(|()| answer)
    }
}

impl Control {
    /// Whether the request at place `request` may be begun, or sent once more: it was not cancelled, and the caller
    /// says yes where there is a gate.
    pub async fn admits(&self, request: usize) -> bool {
        if self.cancel.is_cancelled() {
            return false;
        }
        let Some(gate) = &self.gate else { return true };
        let Some(answer) = gate.knock(request) else {
            return false;
        };
        matches!(
            self.cancel.run_until_cancelled(answer).await,
            Some(Ok(true))
        )
    }

    /// As [`Self::admits`], for a thread of its own. It must not be called where futures are run.
    pub fn admits_blocking(&self, request: usize) -> bool {
        if self.cancel.is_cancelled() {
            return false;
        }
        let Some(gate) = &self.gate else { return true };
        let answer = gate.knock(request);
        answer.is_some_and(|answer| answer.blocking_recv() == Ok(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_gate() -> (Control, Knocks) {
        let (gate, knocks) = Gate::new();
        let control = Control {
            gate: Some(gate),
            ..Control::default()
        };
        (control, knocks)
    }

    #[tokio::test]
    async fn each_request_is_admitted_or_not_by_the_caller() {
        let (control, mut knocks) = with_gate();
        let caller = async {
            for _ in 0..3 {
                let knock = knocks.recv().await.unwrap();
                let even = knock.request % 2 == 0;
                knock.answer(even);
            }
        };
        let asked = async {
            let mut said = Vec::new();
            for request in 0..3 {
                said.push(control.admits(request).await);
            }
            said
        };
        assert_eq!(tokio::join!(caller, asked).1, [true, false, true]);
    }

    #[tokio::test]
    async fn nothing_is_begun_for_a_caller_who_has_gone_or_has_cancelled() {
        let (control, knocks) = with_gate();
        drop(knocks);
        assert!(!control.admits(0).await);
        let (control, _knocks) = with_gate();
        let (admitted, ()) = tokio::join!(control.admits(0), async { control.cancel.cancel() });
        assert!(!admitted);
        assert!(!control.admits(0).await);
        let open = Control::default();
        assert!(open.admits(0).await, "without a gate all may begin");
    }

    #[test]
    fn a_thread_waits_for_the_answer() {
        let (control, mut knocks) = with_gate();
        let asking = std::thread::spawn(move || (control.admits_blocking(7), control));
        let knock = knocks.blocking_recv().unwrap();
        assert_eq!(knock.request, 7);
        knock.answer(true);
        let (admitted, control) = asking.join().unwrap();
        assert!(admitted);
        let asking = std::thread::spawn(move || control.admits_blocking(8));
        drop(knocks.blocking_recv().unwrap());
        assert!(!asking.join().unwrap(), "a dropped knock says no");
    }
}
