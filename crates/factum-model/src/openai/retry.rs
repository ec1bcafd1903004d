//! Asking again: which faults are worth it, how long to wait, and when to stop.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::transport::Fault;
use crate::error::ModelError;
use crate::generator::Control;

/// How often a request is tried again, and how long is waited before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retry {
    /// Attempts after the first.
    pub(super) retries: u32,
    /// Wait before the second attempt; doubled before each further one.
    pub(super) first_wait: Duration,
}

const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The time that one request has, all its attempts included, and who is asked before each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms<'c> {
    start: Instant,
    limit: Duration,
    leave: Option<(&'c Control, usize)>,
}

impl<'c> Terms<'c> {
    /// From now on, with nobody to ask.
    pub(super) fn starting_now(limit: Duration) -> Self {
        Self {
            start: Instant::now(),
            limit,
            leave: None,
        }
    }

    /// From now on, for the request at a place of a call.
    pub(super) fn of(limit: Duration, control: &'c Control, request: usize) -> Self {
        Self {
            leave: Some((control, request)),
            ..Self::starting_now(limit)
        }
    }

    async fn may_send(&self) -> bool {
        match self.leave {
            Some((control, request)) => control.admits(request).await,
            None => true,
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn left(&self) -> Duration {
        self.limit.saturating_sub(self.elapsed())
    }
}

/// What was got, and how many attempts were lost before.
#[derive(Debug)]
pub(super) struct Tried<T> {
    pub(super) value: T,
    pub(super) lost: u32,
}

impl Retry {
    /// Calls `attempt` until it succeeds, fails for good, is not admitted any more, or the attempts or the time are
    /// used up.
    pub(super) async fn run<T, F>(
        &self,
        terms: &Terms<'_>,
        attempt: impl Fn() -> F,
    ) -> Result<Tried<T>, ModelError>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let mut attempts = 0;
        loop {
            if !terms.may_send().await {
                return Err(ModelError::Cancelled);
            }
            attempts += 1;
            let Ok(outcome) = tokio::time::timeout(terms.left(), attempt()).await else {
                return Err(timeout(terms.limit, attempts));
            };
            let fault = match outcome {
                Ok(value) => {
                    return Ok(Tried {
                        value,
                        lost: attempts - 1,
                    });
                }
                Err(fault) => fault,
            };
            // To wait for a moment when there is no time left helps nobody.
            let wait = self.wait(&fault, attempts, Timestamp::now());
            match wait.filter(|wait| attempts <= self.retries && *wait < terms.left()) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(into_error(fault, attempts, terms.elapsed())),
            }
        }
    }

    // None: the same would come again.
    fn wait(&self, fault: &Fault, attempts: u32, now: Timestamp) -> Option<Duration> {
        let retry_after = match fault {
            Fault::Unreachable(_) | Fault::Silence | Fault::Broken(_) => None,
            Fault::Status {
                status: 408 | 429 | 500..=599,
                retry_after,
                ..
            } => retry_after
                .as_deref()
                .and_then(|text| named_wait(text, now)),
            Fault::Status { .. }
            | Fault::Certificate(_)
            | Fault::Unusable(_)
            | Fault::TooLarge { .. } => return None,
        };
        let doublings = attempts.saturating_sub(1).min(16);
        let own = self
            .first_wait
            .saturating_mul(1 << doublings)
            .min(LONGEST_WAIT);
        // Half of it is left to chance, so that requests that failed together do not come together again.
        let jittered = own.mul_f64(0.5 + fastrand::f64() / 2.0);
        Some(retry_after.map_or(jittered, |named| named.max(jittered)))
    }
}

// `Retry-After`: seconds, or a date.
fn named_wait(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let then = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Duration::try_from(then.duration_since(now)).ok()
}

fn timeout(within: Duration, attempts: u32) -> ModelError {
    let whole = within.as_secs() + u64::from(within.subsec_nanos() > 0);
    ModelError::Timeout {
        seconds: whole.max(1),
        attempts,
    }
}

fn into_error(fault: Fault, attempts: u32, elapsed: Duration) -> ModelError {
    match fault {
        Fault::Unreachable(message) => ModelError::Unreachable { message, attempts },
        Fault::Silence => timeout(elapsed, attempts),
        Fault::Certificate(message) => ModelError::Certificate(message),
        Fault::Status {
            status, message, ..
        } => ModelError::Status {
            status,
            message,
            attempts,
        },
        Fault::Broken(message) | Fault::Unusable(message) => {
            ModelError::BadReply { message, attempts }
        }
        Fault::TooLarge { limit } => ModelError::TooLarge { limit },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Retry = Retry {
        retries: 3,
        first_wait: Duration::from_millis(400),
    };

    fn status(status: u16, retry_after: Option<&str>) -> Fault {
        Fault::Status {
            status,
            message: String::new(),
            retry_after: retry_after.map(str::to_owned),
        }
    }

    fn noon() -> Timestamp {
        "2026-03-02T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn waits_grow_and_stay_bounded() {
        for (attempts, least, most) in [
            (1, 200, 400),
            (2, 400, 800),
            (3, 800, 1600),
            (60, 15_000, 30_000),
        ] {
            let wait = RETRY.wait(&Fault::Silence, attempts, noon()).unwrap();
            assert!(wait >= Duration::from_millis(least), "{wait:?}");
            assert!(wait <= Duration::from_millis(most), "{wait:?}");
        }
    }

    #[test]
    fn a_server_may_name_the_wait_in_seconds_or_by_date() {
        let wait = |text| RETRY.wait(&status(429, Some(text)), 1, noon()).unwrap();
        assert_eq!(wait("7"), Duration::from_secs(7));
        assert_eq!(
            wait("Mon, 02 Mar 2026 12:00:09 GMT"),
            Duration::from_secs(9)
        );
        for unusable in [
            "0",
            "soon",
            "-4",
            "Mon, 02 Mar 2026 11:00:00 GMT",
            "99999999999999",
        ] {
            assert!(wait(unusable) <= Duration::from_millis(400), "{unusable}");
        }
    }

    #[test]
    fn only_what_may_pass_is_asked_again() {
        for again in [408, 429, 500, 502, 503, 504] {
            assert!(
                RETRY.wait(&status(again, None), 1, noon()).is_some(),
                "{again}"
            );
        }
        for never in [301, 400, 401, 403, 404, 413, 422] {
            assert!(
                RETRY.wait(&status(never, Some("1")), 1, noon()).is_none(),
                "{never}"
            );
        }
        assert!(
            RETRY
                .wait(&Fault::Certificate(String::new()), 1, noon())
                .is_none()
        );
        assert!(
            RETRY
                .wait(&Fault::TooLarge { limit: 1 }, 1, noon())
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_wait_beyond_the_time_limit_is_not_begun() {
        let terms = Terms::starting_now(Duration::from_mins(1));
        let outcome: Result<Tried<()>, _> = RETRY
            .run(&terms, || async { Err(status(429, Some("3600"))) })
            .await;
        assert_eq!(
            outcome.unwrap_err(),
            ModelError::Status {
                status: 429,
                message: String::new(),
                attempts: 1
            }
        );
    }
}
