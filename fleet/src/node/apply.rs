//! PURE: applies the changes of messages to a filter, in their order.
//!
//! Consecutive changes of one kind form a *row*, which is applied as one batch: the filter fetches the buckets of
//! the next changes while it works on the first. The order within a row does not matter. An extension adds the
//! longer entry before it removes the shorter one, so a lookup finds one of them at every moment.

use concurrent_cuckoo_filter::InsertBatchError;

use super::settings::{EXTENDED_AT_ONCE, Filter};
use super::step::{LeftOut, Step};
use crate::change::Change;

/// Applies these changes to the filter.
///
/// # Errors
/// If the filter refuses a change. Then the filter is not what the log says it should be, and can't be used any
/// more.
pub(crate) fn apply(filter: &Filter, changes: &[Change], left_out: &LeftOut) -> Result<(), String> {
    let mut removed = Vec::new();
    for row in changes.chunk_by(|one, next| kind(one) == kind(next)) {
        match row[0] {
            Change::Insert { .. } => insert(filter, row)?,
            Change::Remove { .. } => remove(filter, row, &mut removed)?,
            Change::Extend { .. } => {
                for some in row.chunks(EXTENDED_AT_ONCE) {
                    insert(filter, some)?;
                    remove(filter, some, &mut removed)?;
                }
            }
            Change::Tick { .. } => {
                for change in row {
                    if let Change::Tick { now } = change
                        && !left_out.has(Step::Ticks)
                    {
                        filter.advance_to((*now).into());
                    }
                }
            }
        }
    }
    Ok(())
}

fn kind(change: &Change) -> std::mem::Discriminant<Change> {
    std::mem::discriminant(change)
}

fn insert(filter: &Filter, changes: &[Change]) -> Result<(), String> {
    let entries = changes.iter().filter_map(|change| match *change {
        Change::Insert { hash, end } | Change::Extend { hash, to: end, .. } => Some((hash, u64::from(end))),
        _ => None,
    });
    match filter.insert_hash_until_batch(entries) {
        Ok(_) => Ok(()),
        Err(InsertBatchError { error, .. }) => Err(format!("the filter has refused an entry of the log's: {error}")),
    }
}

fn remove(filter: &Filter, changes: &[Change], removed: &mut Vec<bool>) -> Result<(), String> {
    let entries = changes.iter().filter_map(|change| match *change {
        Change::Remove { hash, end } | Change::Extend { hash, from: end, .. } => Some((hash, u64::from(end))),
        _ => None,
    });
    removed.clear();
    filter.remove_hash_until_batch(entries, removed);
    if removed.contains(&false) {
        return Err("the filter does not have an entry that the log takes out".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::settings::tests::quick;
    use super::*;

    fn applied(changes: &[Change]) -> (Filter, Result<(), String>) {
        let filter = quick("a").filter().unwrap();
        let result = apply(&filter, changes, &LeftOut::default());
        (filter, result)
    }

    #[test]
    fn each_change_does_what_it_says() {
        let (filter, result) = applied(&[
            Change::Tick { now: 100 },
            Change::Insert { hash: 1, end: 110 },
            Change::Insert { hash: 2, end: 110 },
            Change::Insert { hash: 3, end: 110 },
            Change::Remove { hash: 2, end: 110 },
            Change::Extend { hash: 3, from: 110, to: 120 },
            Change::Extend { hash: 3, from: 120, to: 130 },
        ]);
        assert_eq!(result, Ok(()));
        assert_eq!(filter.live_len(), 2);
        assert_eq!([1, 2, 3].map(|hash| filter.contains_hash(hash)), [true, false, true]);
        filter.advance_to(129);
        assert_eq!([1, 2, 3].map(|hash| filter.contains_hash(hash)), [false, false, true]);
        filter.advance_to(130);
        assert!(!filter.contains_hash(3));
    }

    #[test]
    fn more_extensions_than_there_is_room_for_are_done_some_at_a_time() {
        let capacity = quick("a").capacity as u64;
        let inserts = (0..capacity).map(|hash| Change::Insert { hash: hash << 32 | hash, end: 110 });
        let extends = (0..capacity).map(|hash| Change::Extend { hash: hash << 32 | hash, from: 110, to: 120 });
        let changes: Vec<_> = [Change::Tick { now: 100 }].into_iter().chain(inserts).chain(extends).collect();
        let (filter, result) = applied(&changes);
        assert_eq!(result, Ok(()));
        assert_eq!(filter.live_len() as u64, capacity);
    }

    #[test]
    fn what_the_filter_does_not_have_can_not_be_taken_out() {
        let (_, result) = applied(&[Change::Tick { now: 100 }, Change::Remove { hash: 1, end: 110 }]);
        assert!(result.is_err_and(|why| why.contains("does not have")));
        let (_, result) = applied(&[Change::Insert { hash: 1, end: 110 }]);
        assert!(result.is_err_and(|why| why.contains("is not set")));
    }
}
