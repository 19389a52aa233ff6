//! PURE: the two questions of every insert: what it does if a copy of its class is there, and what came of an attempt.

/// What an insert does if a copy of its class is there already (where entries expire: a live one).
///
/// Entries of a growing table carry nothing. So there the last two are the same as [`Skip`](Self::Skip).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfPresent {
    /// It adds a further copy.
    Add,
    /// It adds nothing.
    Skip,
    /// It adds nothing if a copy that is there also carries the same value. Otherwise it adds.
    SkipEqual,
    /// It adds nothing if the copy that is there can be made to live as long as the new one would. Otherwise it adds.
    Extend,
}

/// What came of one attempt to add a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The copy was added.
    Added,
    /// Nothing was added, since a copy of its class is there.
    Present,
    /// Nothing was added, since there is no room in the buckets that the attempt has tried.
    NoRoom,
}

impl Attempt {
    /// What came of an attempt that looks for no other copy.
    #[inline(always)]
    pub(crate) fn of(added: bool) -> Self {
        if added { Self::Added } else { Self::NoRoom }
    }
}
