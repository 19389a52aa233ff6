//! The page `verification` names only tests that exist.

#[test]
fn every_test_that_the_page_names_exists() {
    let page = include_str!("../src/guide/verification.md");
    let names = page.split('`').filter_map(|name| name.split_once(".rs::"));
    let mut checked = 0;
    for (file, test) in names {
        let source = std::fs::read_to_string(format!("{}/{file}.rs", env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(source.contains(&format!("fn {test}(")), "no {test} in {file}.rs");
        checked += 1;
    }
    assert!(checked > 40, "{checked} names: has their form changed?");
}
