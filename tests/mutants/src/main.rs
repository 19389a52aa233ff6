//! Mutation testing with one build: all mutants of a part of the library are compiled together, and each run of a test
//! switches one of them on. (cargo-mutants, which makes the list, builds the library and its tests for each.)
//!
//! `mutants-in-one-build COPY LIST RESULTS`: the copy of the repository, which this changes; the list that `cargo mutants
//! --list --json` has printed; and the file of results, to which a later run adds those that are missing.
//!
//! 1. All mutants are put into the source (`rewrite.rs`). Those that do not compile are taken out again.
//! 2. Each test of the library runs twice without any: for its time, and to record which mutants it reaches.
//! 3. With each mutant, the tests that reach it run until one fails, the fastest first.
//! 4. The same with the loom models and the stepped tests, for the mutants that were missed.
//!
//! Mutants in constants are left out, since nothing can switch them. They are printed.

mod cargo;
mod list;
mod rewrite;
mod run;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use list::Mutant;
use run::End;

/// The library with the tests that run first, and the models. `check` finds mutants that do not compile.
struct Stage {
    name: &'static str,
    check: &'static [&'static str],
    build: &'static [&'static str],
}

const STAGES: [Stage; 2] = [
    Stage {
        name: "tests",
        check: &["check", "-p", "concurrent-cuckoo-filter", "--all-features", "--lib"],
        build: &["test", "-p", "concurrent-cuckoo-filter", "--all-features", "--tests", "--no-run"],
    },
    Stage {
        name: "models",
        check: &["check", "-p", "loom-tests", "-p", "stepped-tests", "--lib"],
        build: &["test", "-p", "loom-tests", "-p", "stepped-tests", "--tests", "--no-run"],
    },
];

fn main() {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [copy, list, results] = &arguments[..] else { panic!("usage: mutants-in-one-build COPY LIST RESULTS") };
    let json = fs::read_to_string(list).expect("the list can be read");
    let read = |file: &str| fs::read_to_string(copy.join(file)).expect("the source can be read");
    let mutants = list::read(&json, read);
    let sources: HashMap<&String, String> = mutants.iter().map(|Mutant { file, .. }| (file, read(file))).collect();
    let library = read("src/lib.rs");
    let with_switch = library.replacen("mod machine;", "mod machine; mod mutant;", 1);
    assert_ne!(library, with_switch, "the library has that module");
    write(&copy.join("src/lib.rs"), &with_switch);
    write(&copy.join("src/mutant.rs"), include_str!("switch.rs"));

    let mut done = Results::read(results);
    let mut unviable = BTreeSet::new();
    for (nth, stage) in STAGES.iter().enumerate() {
        let placed = put_in(copy, stage, &mutants, &sources, &mut unviable, nth == 0);
        let programs = cargo::build(copy, stage.build);
        let tests = run::measure(&programs, &results.with_extension("reached"));
        println!("{}: {} tests reach mutants", stage.name, tests.len());
        for mutant in mutants.iter().filter(|mutant| placed.contains(&mutant.number)) {
            if done.is_over(mutant, stage.name) {
                continue;
            }
            let reaching = tests.iter().filter(|test| test.reaches.contains(&mutant.number));
            let mut ends = reaching.map(|test| (test.run_with(mutant.number), &test.name));
            let end = ends.find(|(end, _)| *end != End::Passed);
            done.add(mutant, stage.name, end.map_or(("missed", ""), |(end, test)| (noticed(end), test)));
        }
    }
    println!("{}", done.summary(&mutants, &unviable));
}

fn noticed(end: End) -> &'static str {
    if end == End::Failed { "caught" } else { "timed out" }
}

fn write(path: &Path, text: &str) {
    // Cargo builds again what has a later time.
    if fs::read_to_string(path).ok().as_deref() != Some(text) {
        fs::write(path, text).expect("the copy can be changed");
    }
}

/// Puts the mutants into the copy, but for those that do not compile. Returns the numbers of those that it has.
fn put_in(
    copy: &Path,
    stage: &Stage,
    mutants: &[Mutant],
    sources: &HashMap<&String, String>,
    unviable: &mut BTreeSet<u32>,
    prints: bool,
) -> BTreeSet<u32> {
    // Those that do not compile in a model do in the library.
    let mut without = unviable.clone();
    loop {
        let (mut placed, mut code, mut left) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
        for (file, source) in sources {
            let is_in = |mutant: &&Mutant| mutant.file == **file && !without.contains(&mutant.number);
            let of_file: Vec<Mutant> = mutants.iter().filter(is_in).cloned().collect();
            let rewritten = rewrite::rewrite(source, &of_file);
            for (number, range) in &rewritten.mutants {
                let position = |at: usize| {
                    let before = &rewritten.text[..at];
                    let line = before.rfind('\n').map_or(0, |end| end + 1);
                    (before.matches('\n').count() + 1, before[line..].chars().count())
                };
                placed.insert(*number);
                code.entry((*file).clone()).or_insert_with(Vec::new).push((
                    *number,
                    position(range.start),
                    position(range.end),
                ));
            }
            left.extend(rewritten.left);
            write(&copy.join(file), &rewritten.text);
        }
        let Some([errors, further]) = cargo::errors(copy, stage.check) else {
            if prints {
                *unviable = without;
                left.iter().for_each(|number| println!("left out: {}", mutants[*number as usize - 1].name));
            }
            return placed;
        };
        let has = |(file, at): &(String, cargo::Position)| {
            let of_file = code.iter().find(|(path, _)| file.ends_with(&path["src".len()..]))?.1;
            of_file.iter().find(|(_, start, end)| start <= at && at < end).map(|&(number, ..)| number)
        };
        let mut wrong: BTreeSet<u32> = errors.iter().filter_map(has).collect();
        if wrong.is_empty() {
            wrong.extend(further.iter().filter_map(has));
        }
        assert!(!wrong.is_empty(), "errors that are in no mutant: {errors:?}");
        println!("{}: {} mutants do not compile", stage.name, wrong.len());
        without.extend(wrong);
    }
}

/// What is known of each mutant: a line for each stage, with the mutant's name, the stage, how it ended, and by which test.
struct Results {
    path: PathBuf,
    lines: Vec<[String; 4]>,
}

impl Results {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = |line: &str| <[String; 4]>::try_from(line.split('\t').map(str::to_owned).collect::<Vec<_>>()).ok();
        Self { path: path.to_owned(), lines: text.lines().filter_map(line).collect() }
    }

    fn is_over(&self, mutant: &Mutant, stage: &str) -> bool {
        let of_mutant = self.lines.iter().filter(|line| line[0] == mutant.name);
        of_mutant.into_iter().any(|line| line[1] == stage || line[2] != "missed")
    }

    fn add(&mut self, mutant: &Mutant, stage: &str, (end, test): (&str, &str)) {
        println!("{end}: {} {test}", mutant.name);
        self.lines.push([&mutant.name, stage, end, test].map(str::to_owned));
        let text = self.lines.iter().fold(String::new(), |text, line| text + &line.join("\t") + "\n");
        fs::write(&self.path, text).expect("the results can be written");
    }

    /// A table of how many mutants of each file ended in which way, and those that all tests have missed.
    fn summary(&self, mutants: &[Mutant], unviable: &BTreeSet<u32>) -> String {
        let mut files: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        let mut missed = String::new();
        for mutant in mutants {
            let last = self.lines.iter().rfind(|line| line[0] == mutant.name).map(|line| &line[2][..]);
            let is_unviable = unviable.contains(&mutant.number);
            let end = last.unwrap_or(if is_unviable { "does not compile" } else { "left out" });
            *files.entry(&mutant.file).or_default().entry(end).or_default() += 1;
            if end == "missed" {
                writeln!(missed, "missed by all: {}", mutant.name).expect("a string takes all");
            }
        }
        files.iter().map(|(file, ends)| format!("{file}: {ends:?}\n")).collect::<String>() + &missed
    }
}
