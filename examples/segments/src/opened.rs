//! PURE: how a store was opened.

/// How a store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// How many files and directories were deleted, because the manifest did not name them.
    pub deleted: usize,
    /// How many keys were read from logs.
    pub logged: usize,
    /// Where the maplet comes from.
    pub maplet: Origin,
}

/// Where a maplet comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The strategy has no maplet.
    None,
    /// From a snapshot, and from this many segments that were flushed after it.
    #[allow(missing_docs)]
    FromSnapshot { segments: usize },
    /// Rebuilt from all segments, for this reason.
    #[allow(missing_docs)]
    Scanned { reason: String },
}
