//! Questions over case files, and answers that declare what they rest on.
//!
//! The crate knows nothing of terminals or HTTP pages: the command line calls it and shows what it returns.
