//! What is behind the filter: any key-value store that can do this much.

use std::error::Error;
use std::sync::Arc;

/// A durable map from keys to values, with a log of the keys that were added and removed.
///
/// Only the cache in front of it may change it. The cache makes one call of [`apply`](Self::apply) at a time. All
/// other methods may be called at any time, from any thread.
///
/// The *log* says which keys were added and which were removed, in the order of their commits. With it, a filter that
/// was saved at some moment can be brought up to date. Its entries are numbered 1, 2, 3, …. The *sequence* of a
/// moment is the number of the last entry then, and 0 before the first. A store may drop only those entries that
/// [`settle`](Self::settle) allows it to drop.
pub trait Store: Send + Sync {
    /// The error of a failed call.
    type Error: Error + Send + Sync + 'static;

    /// The value of a key.
    ///
    /// # Errors
    /// If the store fails.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Whether there is such a key.
    ///
    /// # Errors
    /// If the store fails.
    fn contains(&self, key: &[u8]) -> Result<bool, Self::Error>;

    /// How many keys there are.
    ///
    /// # Errors
    /// If the store fails.
    fn len(&self) -> Result<u64, Self::Error>;

    /// Whether there are no keys.
    ///
    /// # Errors
    /// If the store fails.
    fn is_empty(&self) -> Result<bool, Self::Error> {
        Ok(self.len()? == 0)
    }

    /// Makes all of the changes, in their order, and appends `log` to the log: both or nothing. The changes are
    /// durable when it returns.
    ///
    /// # Errors
    /// [`ApplyError::NotApplied`] if it is certain that nothing has changed, now and after a crash.
    /// [`ApplyError::Unknown`] if it is not certain. What a scan finds after that must remain.
    fn apply(&self, changes: &[Change<'_>], log: &[Logged<'_>]) -> Result<(), ApplyError<Self::Error>>;

    /// Calls `visit` with each key once.
    ///
    /// # Errors
    /// If the store fails.
    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error>;

    /// The number of the last entry that was ever appended to the log, whether or not it has been dropped since.
    ///
    /// # Errors
    /// If the store fails.
    fn sequence(&self) -> Result<u64, Self::Error>;

    /// Calls `visit` with each entry that is in the log and comes after number `after`, in order.
    ///
    /// # Errors
    /// If the store fails.
    fn for_each_logged(&self, after: u64, visit: &mut dyn FnMut(u64, Logged<'_>)) -> Result<(), Self::Error>;

    /// Sixteen random bytes, which are drawn when the store is made and never change: the key of the filter's hash.
    ///
    /// # Errors
    /// If the store fails.
    fn hash_key(&self) -> Result<[u8; 16], Self::Error>;

    /// Remembers, durably, that from now on there may be a snapshot called `id` of the filter at `sequence`.
    ///
    /// # Errors
    /// If the store fails.
    fn announce(&self, id: u64, sequence: u64) -> Result<(), Self::Error>;

    /// The sequence of the snapshot called `id`, if it was announced and no other has been settled since.
    ///
    /// # Errors
    /// If the store fails.
    fn announced(&self, id: u64) -> Result<Option<u64>, Self::Error>;

    /// Forgets every announced snapshot except `id`, and drops the log up to its sequence, in one durable step. The
    /// snapshot `id` was announced, and its file is in place now.
    ///
    /// # Errors
    /// If the store fails.
    fn settle(&self, id: u64) -> Result<(), Self::Error>;
}

/// One change of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Gives the key this value, in place of any other.
    Put {
        /// The key: any bytes.
        key: &'a [u8],
        /// The value: any bytes.
        value: &'a [u8],
    },
    /// Removes the key and its value, if there is one.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

impl<'a> Change<'a> {
    /// The key that it changes.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

/// An entry of the log: a key that was added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Whether it was added or removed.
    pub membership: Membership,
}

/// What a write did with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It was absent, and is present now.
    Added,
    /// It was present, and is absent now.
    Removed,
}

/// Why a batch of changes failed, and how certain that is.
#[derive(Debug)]
pub enum ApplyError<E> {
    /// Nothing has changed.
    NotApplied(E),
    /// The commit itself failed: either all changes were made or none.
    Unknown(E),
}

/// A store that others hold too, to look at it.
impl<S: Store> Store for Arc<S> {
    type Error = S::Error;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error> {
        (**self).get(key)
    }

    fn contains(&self, key: &[u8]) -> Result<bool, Self::Error> {
        (**self).contains(key)
    }

    fn len(&self) -> Result<u64, Self::Error> {
        (**self).len()
    }

    fn apply(&self, changes: &[Change<'_>], log: &[Logged<'_>]) -> Result<(), ApplyError<Self::Error>> {
        (**self).apply(changes, log)
    }

    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8])) -> Result<(), Self::Error> {
        (**self).for_each_key(visit)
    }

    fn sequence(&self) -> Result<u64, Self::Error> {
        (**self).sequence()
    }

    fn for_each_logged(&self, after: u64, visit: &mut dyn FnMut(u64, Logged<'_>)) -> Result<(), Self::Error> {
        (**self).for_each_logged(after, visit)
    }

    fn hash_key(&self) -> Result<[u8; 16], Self::Error> {
        (**self).hash_key()
    }

    fn announce(&self, id: u64, sequence: u64) -> Result<(), Self::Error> {
        (**self).announce(id, sequence)
    }

    fn announced(&self, id: u64) -> Result<Option<u64>, Self::Error> {
        (**self).announced(id)
    }

    fn settle(&self, id: u64) -> Result<(), Self::Error> {
        (**self).settle(id)
    }
}
