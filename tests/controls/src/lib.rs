//! Compiles the library as a model, in which each control can leave out a step of the protocol.
//!
//! The build script of a package of models calls [`compile_model`]. It copies the library's source and edits the copy, so
//! the source itself shows the protocol alone. An edit is on as many lines as the code that it replaces: lines keep their
//! numbers, which panics name, and `ci/orderings`.
//!
//! - [`table::CONTROLS`]: the steps. Each is left out only while a test says so (`model::Seeded`).
//! - [`table::ADDITIONS`]: what else is different in a model.
//! - The folder `model` beside this one: what the tests of models see of the library. It becomes the module `model` of the
//!   copy.
//!
//! `cargo run -p controls` lists the controls, and the tests in which each must be noticed.

pub mod table;

// So rustfmt finds these files.
#[cfg(any())]
#[path = "../model/mod.rs"]
mod formatted;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A step of the protocol that a model can leave out.
#[derive(Debug)]
pub struct Control {
    /// The name of its variant of `Fault`.
    pub name: &'static str,
    /// What is left out, or done otherwise.
    pub leaves_out: &'static str,
    /// In the order in which they are made.
    pub edits: &'static [Edit],
}

/// What a model has in the place of some code.
#[derive(Debug)]
pub struct Edit {
    /// Below `src`.
    pub file: &'static str,
    /// How often the code occurs. The edit is made in each place.
    pub times: usize,
    /// Perhaps of several lines.
    pub code: &'static str,
    /// `CODE` stands for the code, and `LEFT_OUT` for the condition that the control's step is left out.
    pub instead: &'static str,
}

impl Edit {
    /// Edits the text. `condition` is the meaning of `LEFT_OUT`.
    ///
    /// Edits are made one after the other. So several can put conditions around the same code.
    fn apply(&self, text: &mut String, condition: &str) -> Result<(), String> {
        let Self { file, times, code, instead } = *self;
        let found = text.matches(code).count();
        if found != times {
            return Err(format!("src/{file}: this code occurs {found} times instead of {times}:\n{code}"));
        }
        let instead = instead.replace("CODE", code).replace("LEFT_OUT", condition);
        if instead.lines().count() != code.lines().count() {
            return Err(format!("src/{file}: an edit has another number of lines than its code:\n{code}"));
        }
        *text = text.replace(code, &instead);
        Ok(())
    }
}

/// Copies the library's source, the folder `source`, to the folder `src` of `OUT_DIR`, with the module `model` and with all
/// edits. Compiles the calling package with `ccf_model` set to `model`. The package includes the copy's `lib.rs`.
///
/// If the environment variable `CCF_UNCONTROLLED` is set, leaves the controls out, and sets `ccf_uncontrolled`, with which
/// their tests are ignored. `ci/mutants` needs that: it changes the source, perhaps just where a control edits it.
///
/// # Panics
/// If the code that an edit replaces has changed: change the edit in `tests/controls/src/table.rs` too.
pub fn compile_model(model: &str, source: &str) {
    let controls = if env::var_os("CCF_UNCONTROLLED").is_some() {
        println!("cargo::rustc-cfg=ccf_uncontrolled");
        &[]
    } else {
        table::CONTROLS
    };
    println!("cargo::rerun-if-env-changed=CCF_UNCONTROLLED");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={source}");
    println!("cargo::rerun-if-changed={MODEL}");
    println!("cargo::rustc-cfg=ccf_model");
    println!("cargo::rustc-cfg=ccf_model=\"{model}\"");

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("a build script has it"));
    make_model(controls, Path::new(source), &out.join("src"));
    fs::write(out.join("faults.rs"), faults()).expect("the list of faults can be written");
}

/// The folder of the module `model`.
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/model");

/// Copies the library's source and the module `model`, and edits the copy.
fn make_model(controls: &[Control], source: &Path, copy: &Path) {
    if copy.exists() {
        fs::remove_dir_all(copy).expect("the former copy can be removed");
    }
    copy_folder(source, copy);
    copy_folder(Path::new(MODEL), &copy.join("model"));
    edit(copy, table::ADDITIONS, "false");
    for Control { name, edits, .. } in controls {
        edit(copy, edits, &format!("crate::model::fault::injected(crate::model::fault::Fault::{name})"));
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the source can be read") {
        let path = entry.expect("the source can be read").path();
        let target = to.join(path.file_name().expect("an entry of a folder has a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else if path.ends_with("src/lib.rs") {
            // `include!` allows no inner attributes and no documentation of a crate. Lines keep their numbers.
            let text = fs::read_to_string(&path).expect("the source can be read");
            let lines =
                text.lines().map(|line| if line.starts_with("//!") || line.starts_with("#![") { "" } else { line });
            fs::write(target, lines.collect::<Vec<_>>().join("\n")).expect("a copy can be written");
        } else {
            // Threads of models have small stacks, and none of the code is optimized there: a function into which many
            // others were inlined by force would need too much of it.
            let text = fs::read_to_string(&path).expect("the source can be read");
            fs::write(target, text.replace("#[inline(always)]", "#[inline]")).expect("a copy can be written");
        }
    }
}

fn edit(copy: &Path, edits: &[Edit], condition: &str) {
    for edit in edits {
        let path = copy.join(edit.file);
        let mut text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("src/{}: {error}", edit.file));
        edit.apply(&mut text, condition).unwrap_or_else(|error| panic!("{error}\nSee tests/controls/src/table.rs."));
        fs::write(path, text).expect("a copy can be written");
    }
}

/// The files of the models and of the stepped tests that name a control, from the root of the repository.
///
/// # Panics
/// If one of them cannot be read.
pub fn tests_that_name(name: &str) -> Vec<String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let (mut folders, mut files) = (vec![root.join("loom-tests/tests"), root.join("tests/stepped/tests")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the tests can be read") {
            let path = entry.expect("the tests can be read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("the tests can be read");
            if text.split(|char: char| !char.is_alphanumeric()).any(|word| word == name) {
                files.push(path.strip_prefix(root).expect("it is below the root").display().to_string());
            }
        }
    }
    files.sort();
    files
}

/// The source of `Fault`.
fn faults() -> String {
    let mut text = "/// A step of the protocol that a model can leave out.\n\
                    #[derive(Clone, Copy, Debug, PartialEq, Eq)]\n\
                    pub enum Fault {\n"
        .to_owned();
    for Control { name, leaves_out, .. } in table::CONTROLS {
        writeln!(text, "    /// {leaves_out}\n    {name},").expect("a string takes all");
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDIT: Edit = Edit { file: "a.rs", times: 1, code: "step();", instead: "if !LEFT_OUT { CODE }" };

    fn edited(edit: Edit, text: &str) -> Result<String, String> {
        let mut text = text.to_owned();
        edit.apply(&mut text, "out").map(|()| text)
    }

    #[test]
    fn code_is_replaced_as_often_as_the_edit_says() {
        assert_eq!(edited(EDIT, "a\nstep();\n").unwrap(), "a\nif !out { step(); }\n");
        assert_eq!(
            edited(Edit { times: 2, ..EDIT }, "step(); step();").unwrap(),
            "if !out { step(); } if !out { step(); }"
        );
    }

    #[test]
    fn code_that_has_changed_is_an_error() {
        for text in ["other();", "step(); step();"] {
            assert!(edited(EDIT, text).is_err_and(|error| error.contains("src/a.rs")), "{text}");
        }
    }

    #[test]
    fn an_edit_that_moves_lines_is_an_error() {
        assert!(edited(Edit { instead: "if !LEFT_OUT {\nCODE }", ..EDIT }, "step();").is_err());
    }

    /// As the builds of the models would say, but in a moment.
    #[test]
    fn the_source_has_the_code_that_each_control_edits() {
        let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../src"));
        let folder = env::temp_dir().join(format!("ccf-controls-{}", std::process::id()));
        make_model(table::CONTROLS, source, &folder);
        fs::remove_dir_all(folder).expect("the copy can be removed");
    }

    #[test]
    fn several_edits_can_put_conditions_around_the_same_code() {
        let twice = edited(EDIT, &edited(EDIT, "step();").unwrap()).unwrap();
        assert_eq!(twice, "if !out { if !out { step(); } }");
    }
}
