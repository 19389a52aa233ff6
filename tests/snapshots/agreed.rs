//! A view accepts and refuses what loading accepts and refuses.

use concurrent_cuckoo_filter::{LoadError, SnapshotDamage, View, Viewed};

/// Checks a view of bytes that were to be loaded by what loading them has led to.
pub(crate) fn agreed<F: Viewed>(bytes: &[u8], hasher: F::Hasher, loaded: Result<F, LoadError>) -> Result<F, LoadError> {
    match (&loaded, View::<F, _>::new(bytes, hasher)) {
        (Err(LoadError::MemoryLimit { .. }), _) => (),
        (Ok(_), Err(error)) => {
            assert!(matches!(error, LoadError::Damaged(SnapshotDamage::TrailingBytes { .. })), "loaded, but {error}");
        }
        (Ok(_), Ok(view)) => view.verify().unwrap(),
        (Err(error), Err(of_view)) => assert_eq!(error.to_string(), of_view.to_string()),
        (Err(error), Ok(view)) => {
            let by_scan = matches!(
                error,
                LoadError::Damaged(
                    SnapshotDamage::InvalidBucket { .. }
                        | SnapshotDamage::LifetimeTooLong { .. }
                        | SnapshotDamage::WrongCount { .. }
                        | SnapshotDamage::WrongChecksum { .. }
                )
            );
            assert!(by_scan, "{error}, but a view is accepted");
            assert_eq!(view.verify().unwrap_err().to_string(), error.to_string());
            // Whatever the words are, lookups in them do no harm.
            assert!(!format!("{view:?} {} {}", view.len(), view.false_positive_rate()).is_empty());
        }
    }
    loaded
}
