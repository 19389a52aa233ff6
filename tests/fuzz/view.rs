//! Looks up in a view of any bytes, as a snapshot of a filter of each kind. Nothing panics. A view refuses what loading
//! refuses, if not at once then when it is verified, and for the same reason. If the bytes can be loaded, the view has the
//! answers of the filter.
//!
//! The inputs are those of `load.rs`. The mode's bits 3 to 7 choose the kind here too, and the address: how many bytes after
//! a multiple of 8 the snapshot begins.
#![no_main]

mod kinds;
mod mutate;
mod repair;

use concurrent_cuckoo_filter::{LoadError, Loader, SnapshotDamage, Tick, View, Viewed};
use kinds::{Expiring, Fixed, Growable, Kind, Maplet, OneTable, hashes, kind_of};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use mutate::mutate;
use repair::{prepare, repair, stated_schema};

/// Checks the answers of a view by themselves, and by those of the filter if there is one.
type Check<F> = fn(&View<F, &[u8]>, Option<&F>);

fn check<F: Kind + Viewed<Hasher = Fixed, Key = u64>>(mode: u8, mut bytes: Vec<u8>, answers: Check<F>) {
    repair(&mut bytes, mode % 4, F::NUMBER);
    let schema = if mode & 4 == 0 { stated_schema(&bytes) } else { "u64".to_owned() };
    let mut buffer = vec![0u8; bytes.len() + 16];
    let start = buffer.as_ptr().align_offset(8) + usize::from(mode >> 3) % 8;
    let bytes_there = start..start + bytes.len();
    buffer[bytes_there.clone()].copy_from_slice(&bytes);
    let snapshot = &buffer[bytes_there];

    let loader = Loader::<F, _>::new(Fixed::default(), 1 << 24).schema(schema);
    let loaded = loader.clone().load(snapshot);
    match (loaded, loader.view(snapshot)) {
        (Ok(loaded), Ok(view)) => {
            view.verify().unwrap();
            answers(&view, Some(&loaded.filter));
        }
        (Ok(_), Err(error)) => assert!(matches!(error, LoadError::Damaged(SnapshotDamage::TrailingBytes { .. })), "loaded, but {error}"),
        (Err(LoadError::MemoryLimit { .. }), view) => _ = view.map(|view| answers(&view, None)),
        (Err(error), Ok(view)) => {
            answers(&view, None);
            assert_eq!(view.verify().unwrap_err().to_string(), error.to_string());
        }
        (Err(error), Err(of_view)) => {
            // Bytes after damage count for a view, which knows how many there are.
            let sooner = matches!(
                of_view,
                LoadError::Damaged(
                    SnapshotDamage::TrailingBytes { .. }
                        | SnapshotDamage::Truncated { .. }
                        | SnapshotDamage::EntriesWithoutClock { .. }
                )
            );
            assert!(sooner || error.to_string() == of_view.to_string(), "{error}, but {of_view}");
        }
    }
}

/// The single answers, which a batch repeats.
macro_rules! repeated {
    ($view:ident, |$hash:ident| $single:expr, $found:ident => $batch:expr) => {{
        let single: Vec<_> = hashes(70).map(|$hash| $single).collect();
        let mut $found = Vec::new();
        $batch;
        assert_eq!($found, single);
        single
    }};
}

macro_rules! contains {
    ($view:ident, $filter:ident) => {{
        assert!(!format!("{:?} {}", $view, $view.false_positive_rate()).is_empty());
        let found = repeated!($view, |hash| $view.by_hash().contains(hash),
            found => $view.by_hash().contains_batch(hashes(70), &mut found));
        if let Some(filter) = $filter {
            assert!($view.len() == filter.len() && hashes(70).map(|hash| filter.by_hash().contains(hash)).eq(found));
        }
    }};
}

fn of_maplet(view: &View<Maplet, &[u8]>, maplet: Option<&Maplet>) {
    contains!(view, maplet);
    let values = repeated!(view, |hash| view.by_hash().values(hash),
        found => view.by_hash().values_batch(hashes(70), &mut found));
    if let Some(maplet) = maplet {
        assert!(hashes(70).map(|hash| maplet.by_hash().values(hash)).eq(values));
    }
}

fn of_expiring(view: &View<Expiring, &[u8]>, filter: Option<&Expiring>) {
    let now = view.info().now.map_or(0, Tick::get);
    for tick in [0, now, now.saturating_add(1), now.saturating_add(7), now.saturating_add(1000), u64::MAX] {
        let found = repeated!(view, |hash| view.by_hash().contains_at(hash, Tick::new(tick)),
            found => view.by_hash().contains_at_batch(hashes(70), Tick::new(tick), &mut found));
        if let Some(filter) = filter {
            // One that was never advanced has no entries, and would begin its clock.
            _ = filter.now().map(|_| filter.advance_to(Tick::new(tick)));
            assert!(hashes(70).map(|hash| filter.by_hash().contains(hash)).eq(found));
        }
    }
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| { mutate(data, size, max_size, seed) });

fuzz_target!(init: prepare(), |input: &[u8]| {
    let Some((&mode, bytes)) = input.split_first() else { return };
    match kind_of(mode) {
        Growable::NUMBER => check::<Growable>(mode, bytes.to_vec(), |view, filter| contains!(view, filter)),
        Maplet::NUMBER => check::<Maplet>(mode, bytes.to_vec(), of_maplet),
        Expiring::NUMBER => check::<Expiring>(mode, bytes.to_vec(), of_expiring),
        _ => check::<OneTable>(mode, bytes.to_vec(), |view, filter| contains!(view, filter)),
    }
});
