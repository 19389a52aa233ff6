//! The page on verification names tests that exist.

use std::fs;
use std::path::Path;

/// A file's source; or, of a test target whose modules lie in a folder of its name, that of all of them.
fn source(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if !path.join("main.rs").exists() {
        return read(&path.with_extension("rs"));
    }
    fs::read_dir(&path).unwrap().map(|module| read(&module.unwrap().path())).collect()
}

#[test]
fn every_test_that_the_page_names_exists() {
    let page = include_str!("../src/pages/verification.md");
    let names = page.split('`').filter_map(|name| name.split_once(".rs::"));
    let mut checked = 0;
    for (file, test) in names {
        assert!(source(file).contains(&format!("fn {test}(")), "no {test} in {file}.rs");
        checked += 1;
    }
    assert!(checked > 40, "{checked} names: has their form changed?");
}
