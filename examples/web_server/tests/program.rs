//! The real program, on a loopback port.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

struct Program {
    child: Child,
    address: String,
}

impl Program {
    fn start(data: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_web-server"));
        command.args(["--port=0", "--data"]).arg(data).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").expect("it starts").to_owned();
        Self { child, address }
    }

    /// Sends a request with this token, and returns the first line of the answer.
    fn send(&self, request: &str, token: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = "HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer";
        write!(stream, "{request} {head} {token}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.lines().next().unwrap().to_owned()
    }
}

/// By a signal that the program cannot catch.
impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_was_confirmed_survives_a_hard_kill() {
    let data = tempfile::tempdir().unwrap();
    for round in 0..4 {
        let program = Program::start(data.path());
        for i in 0..10 * round {
            let expected = if i % 2 == 0 { "HTTP/1.1 401 Unauthorized" } else { "HTTP/1.1 200 OK" };
            assert_eq!(program.send("GET /protected", &format!("token-{i}")), expected, "{i}, after {round} kills");
        }
        // It is killed as soon as it has answered.
        for i in 10 * round..10 * (round + 1) {
            assert_eq!(program.send(&format!("PUT /revoked/token-{i}"), ""), "HTTP/1.1 200 OK");
            if i % 2 == 1 {
                assert_eq!(program.send(&format!("DELETE /revoked/token-{i}"), ""), "HTTP/1.1 204 No Content");
            }
        }
    }
}
