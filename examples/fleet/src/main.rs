//! One set of revoked tokens on many servers. All code is in the library beside this file, so that the tests can
//! use it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    fleet::main()
}
