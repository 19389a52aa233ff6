//! What a program has that has copied `cache.rs` and `redb_store.rs` of `db_cache`, in a module of its own. It compiles
//! with the crates that the page names, and with nothing else of this repository.

pub mod database;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::{env, fs, process};

    use redb::{Database, backends::InMemoryBackend};

    use crate::database::{cache::Cache, redb_store::RedbStore};

    /// Crates with their versions and features, as `NAME VERSION FEATURES`.
    fn named_by_the_page() -> BTreeSet<String> {
        let page = include_str!("../../README.md");
        let mut named = BTreeSet::new();
        for command in page.lines().filter_map(|line| line.strip_prefix("cargo add ")) {
            let (crates, features) = command.split_once(" --features ").unwrap_or((command, ""));
            for given in crates.split(' ') {
                let (name, version) = given.split_once('@').unwrap_or((given, ""));
                named.insert(format!("{name} {version} {features}"));
            }
        }
        named
    }

    /// Those that this package, which compiles the files, has. Of a version, the page need only name what is not the
    /// newest series.
    fn needed() -> BTreeSet<String> {
        let manifest = include_str!("../Cargo.toml");
        let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
        let needed = dependencies.lines().map(|line| {
            let (name, rest) = line.split_once(" = ").unwrap();
            let features = rest.split_once('[').map_or("", |(_, list)| list.trim_end_matches("] }"));
            let version = match name {
                "getrandom" | "redb" => rest.split('"').nth(1).unwrap(),
                _ => "",
            };
            format!("{name} {version} {}", features.replace(['"', ' '], ""))
        });
        needed.collect()
    }

    #[test]
    fn the_page_names_the_crates_that_the_files_need() {
        assert_eq!(named_by_the_page(), needed());
    }

    #[test]
    fn the_copied_files_work_alone() {
        let folder = env::temp_dir().join(format!("db-cache-copied-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let store = Arc::new(RedbStore::new(database).unwrap());
        let open = || Cache::open(store.clone(), folder.join("filter"), 1000).unwrap();
        let cache = open();
        assert!(cache.put(b"apple", b"red").unwrap() && cache.put(b"pear", b"green").unwrap());
        cache.snapshot().unwrap();
        assert!(cache.delete(b"pear").unwrap());
        drop(cache);
        let cache = open();
        assert_eq!(*cache.restored.as_ref().unwrap(), 1);
        assert_eq!(cache.get(b"apple").unwrap().unwrap(), b"red");
        assert_eq!(cache.get(b"pear").unwrap(), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
