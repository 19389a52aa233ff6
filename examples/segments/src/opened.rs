//! PURE: how a store was opened.

/// How a store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// Files and directories that nothing named, and that were deleted.
    pub deleted: usize,
    /// Keys that were read from logs.
    pub logged: usize,
    /// Where the maplet comes from.
    pub maplet: Origin,
}

/// Where a maplet comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The strategy has none.
    None,
    /// From a snapshot, and from so many segments that were flushed after it.
    #[allow(missing_docs)]
    FromSnapshot { segments: usize },
    /// From all segments, for this reason.
    #[allow(missing_docs)]
    Scanned { reason: String },
}
