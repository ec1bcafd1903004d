//! An embedder for tests: words of one meaning have one direction, and everything that it is given is written down.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use factum_model::generator::BoxFuture;
use factum_model::{Control, Embedder, ModelError, ModelIdentity};
use serde_json::json;

const DIMENSIONS: usize = 48;
/// Words that mean the same.
const MEANINGS: [&[&str]; 3] = [
    &["hose", "pipe", "tube"],
    &["burst", "broke", "cracked"],
    &["costs", "price", "invoice"],
];

#[derive(Debug)]
pub(crate) struct Concepts {
    identity: ModelIdentity,
    given: Mutex<Vec<String>>,
    /// Texts that it makes vectors of before it fails.
    left: AtomicUsize,
    /// Texts after which it is stopped from outside, as by Ctrl-C.
    stop_after: usize,
}

impl Concepts {
    pub(crate) fn new(version: u32) -> Self {
        Self {
            identity: ModelIdentity::new(json!({"kind": "concepts", "version": version})),
            given: Mutex::default(),
            left: AtomicUsize::new(usize::MAX),
            stop_after: usize::MAX,
        }
    }

    /// One that fails once it has been given so many texts.
    pub(crate) fn failing_after(texts: usize) -> Self {
        let left = AtomicUsize::new(texts);
        Self {
            left,
            ..Self::new(1)
        }
    }

    /// One whose caller is interrupted once it has been given so many texts.
    pub(crate) fn stopped_after(texts: usize) -> Self {
        Self {
            stop_after: texts,
            ..Self::new(1)
        }
    }

    /// What it was given since this was last asked.
    pub(crate) fn given(&self) -> Vec<String> {
        std::mem::take(&mut *self.given.lock().unwrap())
    }

    fn make(&self, texts: &[String], control: &Control) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut out = Vec::new();
        for text in texts {
            if control.cancel.is_cancelled() {
                return Err(ModelError::Cancelled);
            }
            let left = self.left.load(Ordering::SeqCst);
            if left == 0 {
                return Err(ModelError::Engine("out of order".to_owned()));
            }
            self.left.store(left - 1, Ordering::SeqCst);
            let mut given = self.given.lock().unwrap();
            given.push(text.clone());
            if given.len() >= self.stop_after {
                control.cancel.cancel();
            }
            out.push(direction(text));
        }
        Ok(out)
    }
}

fn direction(text: &str) -> Vec<f32> {
    let mut sum = vec![0.0f32; DIMENSIONS];
    sum[0] = 0.1;
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let word = word.to_lowercase();
        let known = MEANINGS.iter().position(|words| words.contains(&&*word));
        let place = match known {
            Some(meaning) => 1 + meaning,
            None if word.len() < 4 => continue,
            None => {
                let hash = word
                    .bytes()
                    .fold(5381usize, |sum, byte| sum * 33 % 65_521 + usize::from(byte));
                4 + hash % (DIMENSIONS - 4)
            }
        };
        sum[place] += 1.0;
    }
    let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
    sum.into_iter().map(|x| x / length).collect()
}

impl Embedder for Concepts {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
        control: &'a Control,
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ModelError>> {
        Box::pin(std::future::ready(self.make(texts, control)))
    }
}
