//! A reader while its file is replaced.

use std::fs;
use std::path::Path;

use concurrent_cuckoo_filter::{LoadError, StableHashBuilder};
use mapped::{Blocked, Mapped, SCHEMA};

fn hasher() -> StableHashBuilder {
    StableHashBuilder::with_key(*b"a key for tests.")
}

fn publish(path: &Path, key: &str, position: u64) {
    let blocked = Blocked::builder_with_hasher(hasher()).capacity(10_000).schema(SCHEMA).build().unwrap();
    blocked.insert(key).unwrap();
    blocked.begin_save().unwrap().position(position).write_to_path(path).unwrap();
}

#[test]
fn a_reader_goes_on_with_the_old_file_until_it_takes_a_new_and_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["blocked.ccf", "other"].map(|name| folder.path().join(name));
    publish(&path, "old.example", 1);
    let mapped = Mapped::open(&path, hasher()).unwrap();
    assert!(!mapped.reload().unwrap(), "it is the same file");
    publish(&other, "new.example", 2);
    let whole = fs::read(&other).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for wrong in [&whole[..whole.len() - 1], &damaged[..]] {
        fs::write(&other, wrong).unwrap();
        fs::rename(&other, &path).unwrap();
        let error = mapped.reload().unwrap_err();
        assert!(error.is::<LoadError>(), "{error}");
        assert!(mapped.current().contains("old.example"));
    }
    let old = mapped.current();
    publish(&path, "new.example", 2);
    assert!(mapped.current().contains("old.example") && !mapped.current().contains("new.example"));
    assert!(mapped.reload().unwrap());
    assert!(mapped.current().contains("new.example") && !mapped.current().contains("old.example"));
    assert!(old.contains("old.example"), "for as long as somebody has it");
}
