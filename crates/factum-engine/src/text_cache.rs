//! Texts that were read and verified are kept for a while, so that serving the same summary again need
//! not read and hash them again. A text is found by its digest, so what is kept can't be out of date.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use factum_base::{CodePointIndex, TextDigest};
use factum_store::{StoreError, Tx};

/// Most bytes of text kept.
const CAPACITY: usize = 32 << 20;

/// A text with its index.
pub(crate) struct Indexed {
    pub(crate) text: String,
    pub(crate) index: CodePointIndex,
}

#[derive(Default)]
pub(crate) struct TextCache {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    texts: HashMap<TextDigest, Arc<Indexed>>,
    /// Oldest first.
    order: VecDeque<TextDigest>,
    bytes: usize,
}

impl TextCache {
    /// The texts of these digests, if all of them are kept.
    pub(crate) fn kept<'d>(
        &self,
        digests: impl Iterator<Item = &'d TextDigest>,
    ) -> Option<HashMap<TextDigest, Arc<Indexed>>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        digests
            .map(|digest| Some((*digest, Arc::clone(kept.texts.get(digest)?))))
            .collect()
    }

    /// The texts of these digests: kept ones, and the others from the store, verified.
    pub(crate) async fn texts(
        &self,
        tx: &mut Tx,
        digests: impl Iterator<Item = TextDigest>,
    ) -> Result<HashMap<TextDigest, Arc<Indexed>>, StoreError> {
        let mut found = HashMap::new();
        let mut absent = Vec::new();
        {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            for digest in digests {
                match kept.texts.get(&digest) {
                    Some(text) => {
                        found.insert(digest, Arc::clone(text));
                    }
                    None if !absent.contains(&digest) => absent.push(digest),
                    None => {}
                }
            }
        }
        if absent.is_empty() {
            return Ok(found);
        }
        for (digest, text) in tx.texts(&absent).await? {
            let index = CodePointIndex::new(&text);
            found.insert(digest, Arc::new(Indexed { text, index }));
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for digest in absent {
            if let Some(text) = found.get(&digest) {
                kept.keep(digest, Arc::clone(text));
            }
        }
        Ok(found)
    }
}

impl Kept {
    fn keep(&mut self, digest: TextDigest, text: Arc<Indexed>) {
        self.bytes += text.text.len();
        if self.texts.insert(digest, text).is_none() {
            self.order.push_back(digest);
        }
        while self.bytes > CAPACITY {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if let Some(gone) = self.texts.remove(&oldest) {
                self.bytes -= gone.text.len();
            }
        }
    }
}
