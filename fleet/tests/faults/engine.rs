//! A `redis-server` in a folder of its own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio, id};
use std::sync::atomic::{AtomicU16, Ordering};
use std::{env, fs};

use redis::{RedisResult, Value, from_redis_value};
use tempfile::{TempDir, tempdir};

use crate::support::{Process, wait_for};

/// Takes the place of a server's clock: as many seconds ahead as the file `ahead` says. (The tool `faketime` does the
/// same, but a server with jemalloc does not start under it.)
const CLOCK: &str = r#"
    #include <stdio.h>
    #include <sys/time.h>
    #include <time.h>
    int gettimeofday(struct timeval *restrict to, void *restrict zone) {
        long ahead = 0;
        FILE *file = fopen("ahead", "r");
        if (file) { if (fscanf(file, "%ld", &ahead) != 1) ahead = 0; fclose(file); }
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        *to = (struct timeval) { now.tv_sec + ahead, now.tv_nsec / 1000 };
        return 0;
    }"#;

fn program() -> String {
    env::var("FLEET_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into())
}

/// Whether there is an engine to test with.
pub(crate) fn has_engine() -> bool {
    let is_there = Command::new(program()).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        assert_ne!(env::var("FLEET_ENGINE").as_deref(), Ok("required"), "redis-server is not installed");
        eprintln!("skipped: redis-server is not installed");
    }
    is_there
}

pub(crate) struct Redis {
    port: u16,
    _process: Process,
    folder: TempDir,
}

impl Redis {
    pub(crate) fn start(options: &str) -> Self {
        Self::start_in(tempdir().unwrap(), options)
    }

    fn start_in(folder: TempDir, options: &str) -> Self {
        let port = free_port();
        let ours = format!("--bind 127.0.0.1 --port {port} --appendonly yes --appendfsync always");
        let mut command = Command::new(program());
        command.args(ours.split(' ')).args(["--save", "", "--repl-diskless-sync-delay", "0"]);
        command.args(options.split_whitespace()).current_dir(&folder).stdout(Stdio::null());
        let clock = folder.path().join("clock.so");
        if clock.exists() {
            command.env("LD_PRELOAD", clock);
        }
        let redis = Self { port, _process: Process(command.spawn().unwrap()), folder };
        wait_for("redis-server to answer", || redis.ask("PING").is_ok());
        redis
    }

    /// A server that starts with the data that this one has now.
    pub(crate) fn copy(&self) -> impl FnOnce() -> Self + use<> {
        let folder = tempdir().unwrap();
        let data = self.folder.path().join("appendonlydir");
        assert!(Command::new("cp").arg("-r").arg(data).arg(folder.path()).status().unwrap().success());
        || Self::start_in(folder, "")
    }

    /// A server whose clock can be set.
    pub(crate) fn with_clock() -> Self {
        let folder = tempdir().unwrap();
        fs::write(folder.path().join("clock.c"), CLOCK).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o", "clock.so", "clock.c"]).current_dir(&folder);
        assert!(compiler.status().unwrap().success());
        Self::start_in(folder, "")
    }

    pub(crate) fn set_clock(&self, ahead: u64) {
        let time = || from_redis_value::<(u64, u64)>(self.ask("TIME").unwrap()).unwrap().0;
        let before = time();
        // In one step, so that the server never reads half a number.
        let [new, path] = ["new", "ahead"].map(|name| self.folder.path().join(name));
        fs::write(&new, ahead.to_string()).and_then(|()| fs::rename(new, path)).unwrap();
        assert!(time().abs_diff(before) > 1000, "the clock of this redis-server can't be set");
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Sends a command, on a connection of its own.
    pub(crate) fn ask(&self, words: &str) -> RedisResult<Value> {
        let words: Vec<_> = words.split(' ').collect();
        redis::cmd(words[0]).arg(&words[1..]).query(&mut redis::Client::open(self.url())?.get_connection()?)
    }

    pub(crate) fn delete(&self, pattern: &str) {
        let keys: Vec<String> = from_redis_value(self.ask(&format!("KEYS {pattern}")).unwrap()).unwrap();
        self.ask(&format!("DEL none {}", keys.join(" "))).unwrap();
    }
}

/// A port on which no process listens, below the ports that systems give to clients.
fn free_port() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let tried = (id() as u16).wrapping_mul(7919).wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
    let port = 20_000 + tried % 10_000;
    if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() { port } else { free_port() }
}
