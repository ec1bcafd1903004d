//! The kept tree against the naive oracle: a plan from scratch.

mod kept_tree;
