//! A reader while its file is replaced.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

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

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("mapped-{name}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_reader_goes_on_with_the_old_file_until_it_takes_the_new_one() {
    let folder = Folder::new("replaced");
    let path = folder.0.join("blocked.ccf");
    publish(&path, "old.example", 1);
    let mapped = Mapped::open(&path, hasher()).unwrap();
    assert!(!mapped.reload().unwrap(), "it is the same file");
    let old = mapped.current();
    publish(&path, "new.example", 2);
    assert!(old.contains("old.example") && !old.contains("new.example"));
    assert!(mapped.current().contains("old.example"));
    assert!(mapped.reload().unwrap());
    assert!(mapped.current().contains("new.example") && !mapped.current().contains("old.example"));
    assert!(old.contains("old.example"), "for as long as somebody has it");
}

#[test]
fn a_file_that_is_no_snapshot_is_refused_and_the_old_one_stays() {
    let folder = Folder::new("refused");
    let path = folder.0.join("blocked.ccf");
    publish(&path, "old.example", 1);
    let mapped = Mapped::open(&path, hasher()).unwrap();
    let other = folder.0.join("other");
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
}
