//! Loads the saved filter and brings it up to date, or says why that is not possible.

use concurrent_cuckoo_filter::StableState;

use crate::error::{CacheError, RebuildReason};
use crate::filter::Filter;
use crate::options::Options;
use crate::snapshot::{self, Snapshot};
use crate::store::{Logged, Membership, Store};

/// The filter from the snapshot and the log, and how many entries of the log were replayed. Or the reason why the
/// filter must be rebuilt.
#[expect(clippy::type_complexity, reason = "a filter or a reason to rebuild, or a failure")]
pub(crate) fn load<S: Store>(
    store: &S,
    hasher: &StableState,
    options: &Options,
) -> Result<Result<(Filter, u64), RebuildReason>, CacheError<S::Error>> {
    let Some(path) = &options.snapshot else {
        return Ok(Err(RebuildReason::NotAskedFor));
    };
    let Snapshot { id, sequence: after, filter } = match snapshot::read(path, hasher.clone()) {
        Ok(read) => read,
        Err(reason) => return Ok(Err(reason)),
    };
    let keys = store.len().map_err(CacheError::Store)?;
    if store.announced(id).map_err(CacheError::Store)? != Some(after) {
        return Ok(Err(RebuildReason::Unannounced));
    }
    if (filter.capacity() as u64) < keys.max(options.capacity as u64)
        || filter.max_false_positive_rate() > options.false_positive_rate
    {
        return Ok(Err(RebuildReason::TooSmall));
    }
    let mut replay = Replay { filter: &filter, hasher, last: after, fault: None };
    store.for_each_logged(after, &mut |sequence, entry| replay.take(sequence, entry)).map_err(CacheError::Store)?;
    let Replay { last, fault, .. } = replay;
    if let Some(fault) = fault {
        return Ok(Err(fault));
    }
    if last != store.sequence().map_err(CacheError::Store)? {
        return Ok(Err(RebuildReason::LogIncomplete));
    }
    if filter.len() as u64 != keys {
        return Ok(Err(RebuildReason::Mismatch { filter: filter.len(), store: keys }));
    }
    Ok(Ok((filter, last - after)))
}

/// Applies the log to a filter, until something is wrong.
struct Replay<'f> {
    filter: &'f Filter,
    hasher: &'f StableState,
    last: u64,
    fault: Option<RebuildReason>,
}

impl Replay<'_> {
    fn take(&mut self, sequence: u64, entry: Logged<'_>) {
        if self.fault.is_none() {
            self.fault = self.try_take(sequence, entry).err();
        }
    }

    fn try_take(&mut self, sequence: u64, entry: Logged<'_>) -> Result<(), RebuildReason> {
        if self.last.checked_add(1) != Some(sequence) {
            return Err(RebuildReason::LogIncomplete);
        }
        self.last = sequence;
        let hash = self.hasher.hash_bytes(entry.key);
        match entry.membership {
            Membership::Added => self.filter.insert_hash(hash).map_err(RebuildReason::Insert),
            // If there is no copy to remove, the lengths don't match in the end.
            Membership::Removed => {
                self.filter.remove_hash(hash);
                Ok(())
            }
        }
    }
}
