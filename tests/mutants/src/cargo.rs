//! What cargo does with the copy: it finds mutants that do not compile, and builds the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A place in a file: its line, and the characters before it in that line.
pub type Position = (usize, usize);

/// The messages that cargo prints for this command in this folder, and whether it succeeded.
fn messages(folder: &Path, arguments: &[&str]) -> (Vec<Value>, bool) {
    let mut command = Command::new("cargo");
    command.current_dir(folder).args(arguments).arg("--message-format=json");
    // Some mutants are errors that lints find. In a build with all of them, these are no errors.
    let output = command.env("RUSTFLAGS", "--cap-lints=warn").stderr(Stdio::inherit()).output().expect("cargo runs");
    let lines = String::from_utf8_lossy(&output.stdout);
    (lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(), output.status.success())
}

/// The places to which the errors of this command point, each with its file, and further places that they name. `None` if
/// it succeeds.
///
/// # Panics
/// If it fails without an error that has a place.
pub fn errors(folder: &Path, arguments: &[&str]) -> Option<[Vec<(String, Position)>; 2]> {
    let (messages, is_success) = messages(folder, arguments);
    let errors: Vec<_> = messages.iter().map(|line| &line["message"]).filter(|line| line["level"] == "error").collect();
    let mut places = [Vec::new(), Vec::new()];
    for span in errors.iter().flat_map(|error| error["spans"].as_array().into_iter().flatten()) {
        let number = |name: &str| span[name].as_u64().expect("a span has numbers") as usize;
        let file = span["file_name"].as_str().expect("a span has a file").to_owned();
        places[usize::from(span["is_primary"] != true)]
            .push((file, (number("line_start"), number("column_start") - 1)));
    }
    let is_placed = !places[0].is_empty();
    assert!(is_success || is_placed, "cargo {arguments:?} failed: {errors:?}");
    is_placed.then_some(places)
}

/// A program of tests, and the folder in which it runs.
pub struct Tests {
    pub program: PathBuf,
    pub folder: PathBuf,
}

/// Builds tests.
pub fn build(folder: &Path, arguments: &[&str]) -> Vec<Tests> {
    let (messages, is_success) = messages(folder, arguments);
    assert!(is_success, "the tests do not build");
    let of = |message: &Value| {
        let program = PathBuf::from(message["executable"].as_str()?);
        let manifest = Path::new(message["manifest_path"].as_str()?);
        let is_test = message["profile"]["test"] == true;
        is_test.then(|| Tests { program, folder: manifest.parent().expect("it is in a folder").to_owned() })
    };
    messages.iter().filter_map(of).collect()
}
