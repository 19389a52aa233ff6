//! What pages name exists: the tests on the page `verification`, the items in CONTRIBUTING.md, the faults that have no
//! history, and the code on which `tests/proof` rests. (`ci/links` checks the links of all pages.)

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn every_test_that_the_page_names_exists() {
    let page = include_str!("../docs/verification.md");
    let names = page.split('`').filter_map(|name| name.split_once(".rs::"));
    let mut checked = 0;
    for (file, test) in names {
        assert!(read(format!("{file}.rs")).contains(&format!("fn {test}(")), "no {test} in {file}.rs");
        checked += 1;
    }
    assert!(checked > 40, "{checked} names: has their form changed?");
}

/// The sources below a folder, one after the other.
fn sources(folder: &str) -> String {
    fn add(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&read(path));
            }
        }
    }
    let mut text = String::new();
    add(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut text);
    text
}

/// The names in a source, each once.
fn names(source: &str) -> BTreeSet<&str> {
    source.split(|c: char| !c.is_alphanumeric() && c != '_').collect()
}

#[test]
fn every_item_that_contributing_names_exists() {
    let page = read("CONTRIBUTING.md");
    let source = ["src", "tests", "loom-tests/tests"].map(sources).concat();
    let mut checked = 0;
    for code in page.split('`').skip(1).step_by(2) {
        // A name, a path of names, or a macro. A part of a name selects a test.
        let is_name = code.chars().all(|c| c.is_alphanumeric() || "_:!".contains(c)) && !code.starts_with("CCF_");
        let is_of_code = code.contains(['_', ':', '!']) || code.chars().all(char::is_uppercase);
        if is_name && is_of_code {
            let name = code.trim_end_matches('!').rsplit("::").next().unwrap();
            assert!(source.contains(name), "CONTRIBUTING.md names {code}, and there is none");
            checked += 1;
        }
    }
    assert!(checked > 15, "{checked} names: has their form changed?");
}

#[test]
fn every_control_is_in_a_test_and_the_page_lists_those_without_a_history() {
    let source = read("tests/controls/src/table.rs");
    let controls = source.split("control(").filter_map(|from| from.trim_start().strip_prefix('"')?.split('"').next());
    let controls: BTreeSet<_> = controls.collect();
    assert!(controls.len() > 60, "{} controls: has their form changed?", controls.len());

    let tests = ["loom-tests/tests", "tests/stepped/tests"].map(sources).concat();
    let named = names(&tests);
    let without: Vec<_> = controls.difference(&named).collect();
    assert!(without.is_empty(), "{without:?} are in no test");

    let histories = sources("tests/stepped/tests/histories");
    let named = names(&histories);
    let without: BTreeSet<_> = controls.difference(&named).copied().collect();
    let page = read("tests/stepped/README.md");
    let listed: BTreeSet<_> = page.split('`').skip(1).step_by(2).filter(|code| controls.contains(code)).collect();
    assert_eq!(listed, without, "those that tests/stepped/README.md lists, and those without a history");
}

/// The functions with this name, without their last brace.
fn bodies<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let mut bodies = Vec::new();
    for (at, found) in source.match_indices(&format!("fn {name}")) {
        let (before, from) = source.split_at(at);
        let line = before.lines().next_back().unwrap_or_default();
        let end = format!("\n{}}}", &line[..line.len() - line.trim_start().len()]);
        // Not one with a longer name, and none that a trait only declares.
        if from[found.len()..].starts_with(['(', '<']) && from.find('{') < from.find(";\n") {
            bodies.push(from.split(&end).next().unwrap_or(from));
        }
    }
    bodies
}

fn has_in_order(body: &str, lines: &str) -> bool {
    lines
        .split(" → ")
        .try_fold(body, |rest, line| rest.split_once(line.trim_matches('`')).map(|(_, rest)| rest))
        .is_some()
}

#[test]
fn the_code_of_each_proved_step_is_there() {
    let table = read("tests/proof/steps.md").replace("\\|", "\u{1}");
    let rows =
        table.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>()).filter(|row| row.len() == 6);
    let rows: Vec<_> = rows.skip(2).collect();
    assert!(rows.len() > 40, "{} rows: has their form changed?", rows.len());
    for row in rows {
        let [_, _, step, place, lines, _] = row[..] else { unreachable!("it has six parts") };
        let (file, function) = place.split_once("::").expect("a file and its function");
        let (source, lines) = (read(Path::new("src").join(file)), lines.replace('\u{1}', "|"));
        assert!(
            bodies(&source, function).iter().any(|body| has_in_order(body, &lines)),
            "{step}: {function} in {file} has not, in this order: {lines}"
        );
    }
}
