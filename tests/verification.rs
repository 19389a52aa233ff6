//! What pages name exists: the tests on the page `verification`, the targets of the guide's links, and the code on which
//! `tests/proof` rests.

use std::fs;
use std::path::Path;

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn every_test_that_the_page_names_exists() {
    let page = include_str!("../src/guide/verification.md");
    let names = page.split('`').filter_map(|name| name.split_once(".rs::"));
    let mut checked = 0;
    for (file, test) in names {
        assert!(read(format!("{file}.rs")).contains(&format!("fn {test}(")), "no {test} in {file}.rs");
        checked += 1;
    }
    assert!(checked > 40, "{checked} names: has their form changed?");
}

/// The definitions of links in a text, as a label and a target.
fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.trim_start_matches([' ', '/', '!']).strip_prefix('[')?.split_once("]: "))
}

/// What the repository's site and rustdoc make of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

#[test]
fn links_between_pages_of_the_guide_lead_somewhere_on_the_site_and_in_the_documentation() {
    let rustdoc = read("src/guide/mod.rs");
    let mut checked = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = read(&path);
        for label in page.split("][").skip(1).map(|rest| rest.split(']').next().unwrap()) {
            assert!(links(&page).any(|(defined, _)| defined == label), "{path:?} does not define [{label}]");
        }
        for (label, target) in links(&page) {
            let (file, wanted) = target.split_once('#').unwrap_or((target, ""));
            let other = read(path.with_file_name(file));
            let mut headings =
                other.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
            assert!(wanted.is_empty() || headings.any(|line| anchor(line.trim()) == wanted), "{path:?}: {target}");
            let is_here = links(&rustdoc)
                .any(|(defined, item)| defined == label && item.split_once('#').unwrap_or((item, "")).1 == wanted);
            assert!(is_here, "src/guide/mod.rs does not define [{label}] of {path:?}");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked} links: has their form changed?");
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
