//! The real program, on a loopback port.
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;

use ureq::{Agent, http::Request};

struct Program {
    child: Mutex<Child>,
    address: String,
    agent: Agent,
}

impl Program {
    fn start(data: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_web-server"));
        command.args(["--port=0", "--data"]).arg(data).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect("it starts").to_owned();
        let agent = Agent::config_builder().http_status_as_error(false).build().into();
        Self { child: Mutex::new(child), address, agent }
    }

    /// By a signal that it cannot catch, and waits for its end.
    fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }

    /// The status of the answer. `None` if the program is gone.
    fn send(&self, method: &str, path: &str, token: &str) -> Option<u16> {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.address));
        let request = request.header("authorization", format!("Bearer {token}")).body(()).unwrap();
        Some(self.agent.run(request).ok()?.status().as_u16())
    }

    /// Revokes tokens, and reinstates every fifth one, until the program is gone. Returns what was confirmed: tokens,
    /// each with the status that a request with it must get.
    fn write(&self, name: &str) -> Vec<(String, u16)> {
        let mut confirmed = Vec::new();
        for i in 0.. {
            let (path, status) = (format!("/revoked/{name}-{i}"), if i % 5 == 0 { 200 } else { 401 });
            let is_revoked = self.send("PUT", &path, "") == Some(200);
            if !is_revoked || status == 200 && self.send("DELETE", &path, "") != Some(204) {
                break;
            }
            confirmed.push((format!("{name}-{i}"), status));
        }
        confirmed
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn what_was_confirmed_survives_a_hard_kill() {
    let data = tempfile::tempdir().unwrap();
    let mut confirmed: Vec<(String, u16)> = Vec::new();
    for round in 0..4 {
        let program = Program::start(data.path());
        for (token, status) in &confirmed {
            assert_eq!(program.send("GET", "/protected", token), Some(*status), "{token}, after {round} kills");
        }
        let before = confirmed.len();
        thread::scope(|scope| {
            let program = &program;
            let writers = [0, 1, 2, 3].map(|writer| scope.spawn(move || program.write(&format!("{round}-{writer}"))));
            // In the midst of the writes, which go on until the program is gone.
            let late = format!("{round}-0-24");
            while program.send("GET", "/protected", &late) == Some(200) && !writers[0].is_finished() {}
            assert!(!writers[0].is_finished(), "a write failed");
            program.kill();
            confirmed.extend(writers.into_iter().flat_map(|writer| writer.join().unwrap()));
        });
        assert!(confirmed.len() > before + 20, "too few to show anything");
    }
}
