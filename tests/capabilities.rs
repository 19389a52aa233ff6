//! The page `capabilities` says which type has which methods, and no other page says otherwise.
//!
//! What a type has is read from the source: its public methods, and the traits that it implements.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use concurrent_cuckoo_filter::{
    ConcurrentBuilder, ConcurrentCuckooFilter, CuckooMaplet, CuckooRateLimiter, ExpiringBuilder, ExpiringCuckooFilter,
    GrowableBuilder, GrowableCuckooFilter, LimiterBuilder, MapletBuilder, RecentBuilder, RecentCuckooFilter,
};

/// Each type, and its builder, by the name that a program gives it.
macro_rules! types {
    ($($filter:ident $builder:ident)*) => {
        const TYPES: &[(&str, &str)] = &[$((stringify!($filter), stringify!($builder))),*];

        #[test]
        fn all_types_have_what_every_program_uses() {
            fn is_shared<F: Send + Sync + std::fmt::Debug>() {}
            $(
                is_shared::<$filter<std::rc::Rc<str>>>();
                let builder: $builder<u64> = $filter::<u64>::builder();
                let _ = |filter: &$filter<u64>| {
                    filter.clear();
                    let _ = (filter.len(), filter.is_empty(), filter.capacity(), filter.plan(), filter.hasher());
                    let _ = (filter.stats().figures().count(), filter.by_hash());
                };
                let _ = builder.huge_pages(true).false_positive_rate(0.01).clone().plan();
            )*
        }

        #[cfg(feature = "snapshot")]
        #[test]
        fn all_types_can_be_saved_and_loaded() {
            $(
                let _ = $filter::<u64>::builder().schema("keys");
                let _ = |filter: &$filter<u64>| {
                    drop(filter.begin_save());
                    drop(filter.save(Vec::new()));
                    drop($filter::<u64>::load(&[][..], filter.hasher().clone(), 0));
                };
            )*
        }
    };
}

types! {
    ConcurrentCuckooFilter ConcurrentBuilder
    GrowableCuckooFilter GrowableBuilder
    RecentCuckooFilter RecentBuilder
    ExpiringCuckooFilter ExpiringBuilder
    CuckooMaplet MapletBuilder
    CuckooRateLimiter LimiterBuilder
}

const PAGE: &str = include_str!("../src/guide/capabilities.md");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of this kind in a folder and in those below it.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
}

fn files_in(folders: &[&str], extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    folders.iter().for_each(|folder| files(&root().join(folder), extension, &mut found));
    found
}

/// The first name of a type in a piece of code.
fn name(code: &str) -> &str {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').find(|name| !name.is_empty()).unwrap_or_default()
}

/// For each public type, the names of its methods and of the traits that it implements. `Viewed` counts as `View`.
fn methods() -> BTreeMap<String, BTreeSet<String>> {
    let mut methods = BTreeMap::<_, BTreeSet<_>>::new();
    for path in files_in(&["src/filter", "src/snapshot"], "rs") {
        let source = fs::read_to_string(path).unwrap();
        for block in source.split("\nimpl").skip(1) {
            let block = block.split("\n}").next().unwrap();
            let head = block.split_once('{').map_or(block, |(head, _)| head);
            // The parameters of the block end where as many brackets are closed as were opened.
            let mut depth = 0;
            let end = head.find(|c| {
                depth += i32::from(c == '<') - i32::from(c == '>');
                depth == 0
            });
            let head = if head.starts_with('<') { &head[end.expect("they are closed") + 1..] } else { head };
            let (of_trait, owner) = match head.split_once(" for ") {
                Some((of_trait, owner)) => (Some(of_trait), owner),
                None => (None, head),
            };
            let has = methods.entry(name(owner).to_string()).or_default();
            let start = if of_trait.is_some() { "\n    fn " } else { "\n    pub fn " };
            has.extend(block.split(start).skip(1).map(|from| name(from).to_string()));
            if of_trait.is_some_and(|of_trait| name(of_trait) == "Viewed") {
                has.insert("View".to_string());
            }
        }
    }
    methods
}

/// What stands between backticks: names of methods, of types, and code.
fn codes(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_table_is_what_the_types_have() {
    let methods = methods();
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() > 15, "{} rows: has their form changed?", rows.len());
    let head = PAGE.lines().find(|line| line.starts_with("| |")).expect("the table has a head");
    assert_eq!(codes(head), TYPES.iter().map(|&(filter, _)| filter).collect::<Vec<_>>());
    for row in rows {
        let is_of_builder = row[1].contains("of the builder");
        let names: Vec<_> = codes(row[1]).into_iter().filter(|name| !["snapshot", "serde"].contains(name)).collect();
        for (&(filter, builder), &cell) in TYPES.iter().zip(&row[2..]) {
            let has = &methods[if is_of_builder { builder } else { filter }];
            for name in &names {
                let right = if has.contains(*name) { "yes" } else { "–" };
                assert_eq!(cell, right, "{filter}, {name}");
            }
        }
    }
}

/// The paragraphs and list items of a page, or of the documentation in a source.
fn paragraphs(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let is_source = path.extension().is_some_and(|extension| extension == "rs");
    let mut paragraphs = vec![String::new()];
    let mut is_code = false;
    for line in text.lines() {
        let line = match (is_source, line.trim_start().strip_prefix("//!").or(line.trim_start().strip_prefix("///"))) {
            (false, _) => line,
            (true, Some(comment)) => comment,
            (true, None) => "",
        };
        let line = line.trim();
        is_code ^= line.starts_with("```");
        let is_item =
            line.starts_with("- ") || line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
        if line.is_empty() || is_item || line.starts_with('|') {
            paragraphs.push(String::new());
        }
        if !is_code {
            let paragraph = paragraphs.last_mut().expect("there is one from the beginning");
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    paragraphs
}

/// The words after which a paragraph speaks of every type.
const ALL: [&str; 8] =
    ["all types", "every type", "each type", "any type", "all filters", "every filter", "all have", "all can"];

/// A method that some types lack, in a paragraph on all types that does not name them.
fn wrong(paragraph: &str, partial: &BTreeMap<&str, Vec<&str>>) -> Option<String> {
    let plain = paragraph.to_lowercase();
    if !ALL.iter().any(|words| plain.contains(words)) {
        return None;
    }
    codes(paragraph).into_iter().find_map(|code| {
        let lacking = partial.get(code.trim_end_matches("()"))?;
        let missing: Vec<_> = lacking.iter().filter(|filter| !paragraph.contains(**filter)).collect();
        (!missing.is_empty()).then(|| format!("`{code}`, which {missing:?} lack, in: {paragraph}"))
    })
}

#[test]
fn what_is_said_of_all_types_is_true_of_each() {
    let methods = methods();
    let all: BTreeSet<&str> = TYPES.iter().flat_map(|(filter, _)| &methods[*filter]).map(String::as_str).collect();
    let lacking = |name: &str| {
        TYPES.iter().map(|&(filter, _)| filter).filter(|filter| !methods[*filter].contains(name)).collect::<Vec<_>>()
    };
    let partial: BTreeMap<_, _> =
        all.into_iter().map(|name| (name, lacking(name))).filter(|(_, lacking)| !lacking.is_empty()).collect();
    assert!(partial.contains_key("unite") && !partial.contains_key("clear"));

    let mut pages = files_in(&["src", "docs"], "md");
    pages.extend(files_in(&["src"], "rs"));
    pages.extend(["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "examples/README.md"].map(|page| root().join(page)));
    let mut found = Vec::new();
    for page in pages {
        let name = page.strip_prefix(root()).unwrap().display().to_string();
        let wrong = paragraphs(&page).iter().filter_map(|paragraph| wrong(paragraph, &partial)).collect::<Vec<_>>();
        found.extend(wrong.into_iter().map(|wrong| format!("{name}: {wrong}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));

    // It finds such a sentence, and lets pass one that names the types that lack the method.
    let names = partial["unite"].join("`, `");
    assert!(wrong("All types have `unite` and `clear`.", &partial).is_some());
    assert!(wrong(&format!("All types but `{names}` have `unite`."), &partial).is_none());
    assert!(wrong("Some have `unite`.", &partial).is_none());
}
