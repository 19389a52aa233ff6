//! A `redis-server` in a folder of its own.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use fleet::testing::server::Server;
use redis::{RedisResult, Value, from_redis_value};
use tempfile::{TempDir, tempdir};

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

pub(crate) struct Redis {
    server: Server,
    folder: TempDir,
}

impl Redis {
    pub(crate) fn start(options: &str) -> Self {
        Self::start_in(tempdir().unwrap(), options)
    }

    fn start_in(folder: TempDir, options: &str) -> Self {
        let options: Vec<_> = options.split_whitespace().chain(["--repl-diskless-sync-delay", "0"]).collect();
        Self { server: Server::start_with(folder.path(), &options).unwrap(), folder }
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
        self.server.address()
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
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
