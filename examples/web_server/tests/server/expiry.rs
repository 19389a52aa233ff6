//! A revoked token is refused until it expires, and is then forgotten.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::{Clock, Server, data, wait_for};
use crate::tokens::{assert_all_revoked, tokens};

/// When the tests begin, by the server's clock: the beginning of a tick.
const START: u64 = 1_800_000_000;
/// A tick has 100 seconds.
const ARGUMENTS: [&str; 6] = ["--longest-lifetime", "1000", "--leeway", "0", "--ticks", "10"];

/// `{"sub":"a","exp":1800000250}`, with a meaningless signature.
const JWT_UNTIL_250: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIiwiZXhwIjoxODAwMDAwMjUwfQ.c2lnbmF0dXJl";
/// `{"exp":1799999999}`
const JWT_EXPIRED: &str = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3OTk5OTk5OTl9.c2lnbmF0dXJl";
/// `{"exp":1800005000}`
const JWT_TOO_LATE: &str = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE4MDAwMDUwMDB9.c2lnbmF0dXJl";
/// `{"exp":"soon"}`
const JWT_WITHOUT_A_NUMBER: &str = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOiJzb29uIn0.c2lnbmF0dXJl";

fn path(token: &str) -> String {
    format!("/revoked/{token}")
}

fn until(token: &str, seconds: u64) -> String {
    format!("/revoked/{token}?exp={}", START + seconds)
}

#[track_caller]
fn stats(server: &Server) -> serde_json::Value {
    server.client().get("/stats").json()
}

#[test]
fn a_revoked_token_is_refused_until_its_expiry_and_not_longer() {
    let (data, clock) = (data(), Clock::at(START));
    let server = Server::start(data.path(), &clock.arguments(&ARGUMENTS));
    let client = server.client();
    let body = format!("{{\"exp\": {}}}", START + 250);
    for (answer, seconds) in [
        (client.put(&until("by-query", 250)), 250),
        (client.put_body(&path("by-body"), &body), 250),
        (client.put(&path(JWT_UNTIL_250)), 250),
        (client.put(&path("unknown")), 1000),
    ] {
        assert_eq!((answer.status, &answer.json()["until"]), (201, &(START + seconds).into()), "{answer:?}");
    }
    let until_250 = ["by-query", "by-body", JWT_UNTIL_250].map(str::to_owned);

    clock.set(START + 249);
    // A change tells the filter the time, so this need not wait for the timer.
    assert_eq!(client.put(&until("another", 900)).status, 201);
    assert_all_revoked(&client, &until_250);
    assert_eq!(client.get(&path("by-query")).json()["until"], START + 250);
    // To the second, although the filter has it until the end of the tick.
    clock.set(START + 250);
    for token in &until_250 {
        assert_eq!(client.protected(token, None), 200, "{token}");
        assert_eq!(client.get(&path(token)).json()["revoked"], false);
    }
    assert_eq!(stats(&server)["revoked_live"], 5);

    clock.set(START + 300);
    wait_for("the tokens to be swept", || stats(&server)["revoked"]["len"] == 2);
    let questions = stats(&server)["store_questions"].clone();
    assert!(until_250.iter().all(|token| client.protected(token, None) == 200));
    assert_eq!(stats(&server)["store_questions"], questions, "the filter has forgotten them");
    assert_eq!(client.protected("unknown", None), 401);
    clock.set(START + 1000);
    assert_eq!(client.protected("unknown", None), 200);
}

/// With the machine's clock.
#[test]
fn a_token_expires_by_the_clock_of_the_machine() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let data = data();
    let server = Server::start(data.path(), &["--longest-lifetime", "60", "--leeway", "0", "--ticks", "60"]);
    let client = server.client();
    let exp = now() + 4;
    assert_eq!(client.put(&format!("/revoked/token?exp={exp}")).status, 201);
    let status = client.protected("token", None);
    assert!(status == 401 || now() >= exp);
    wait_for("the token to expire", || client.protected("token", None) == 200);
    assert!(now() >= exp);
    wait_for("the token to be swept", || stats(&server)["revoked"]["len"] == 0);
    assert_eq!(stats(&server)["revoked"]["expired"], 1);
}

#[test]
fn leeway_is_given_to_each_token() {
    let (data, clock) = (data(), Clock::at(START));
    let server = Server::start(data.path(), &clock.arguments(&["--longest-lifetime", "1000", "--leeway", "30"]));
    let client = server.client();
    for (path, seconds) in [(until("told", 1000), 1030), (path(JWT_UNTIL_250), 280), (path("unknown"), 1030)] {
        assert_eq!(client.put(&path).json()["until"], START + seconds, "{path}");
    }
    // Others may still accept it, so it is not too late.
    assert_eq!(client.put(&until("just-expired", 0)).status, 201);
    clock.set(START + 279);
    assert_eq!(client.protected(JWT_UNTIL_250, None), 401);
    clock.set(START + 280);
    assert_eq!(client.protected(JWT_UNTIL_250, None), 200);
}

#[test]
fn of_an_expired_token_there_is_nothing_to_remember() {
    let (data, clock) = (data(), Clock::at(START));
    let server = Server::start(data.path(), &clock.arguments(&ARGUMENTS));
    let client = server.client();
    for path in [until("now", 0), "/revoked/seventies?exp=17".into(), path(JWT_EXPIRED)] {
        let answer = client.put(&path);
        assert_eq!((answer.status, &answer.json()["revoked"]), (200, &false.into()), "{answer:?}");
        assert!(answer.json()["why"].as_str().unwrap().contains("has expired"), "{answer:?}");
    }
    assert_eq!(client.protected(JWT_EXPIRED, None), 200);
    let stats = stats(&server);
    assert_eq!((&stats["revoked"]["len"], &stats["store_tokens"]), (&0.into(), &0.into()));
}

#[test]
fn an_expiry_beyond_the_longest_lifetime_is_refused_and_names_the_remedy() {
    let (data, clock) = (data(), Clock::at(START));
    let server = Server::start(data.path(), &clock.arguments(&ARGUMENTS));
    let client = server.client();
    assert_eq!(client.put(&until("longest", 1000)).status, 201);
    let milliseconds = until("late", 1000) + "000";
    for (path, exp) in
        [(until("late", 1001), "1800001001"), (path(JWT_TOO_LATE), "1800005000"), (milliseconds, "1000000")]
    {
        let answer = client.put(&path);
        assert_eq!(answer.status, 422, "{answer:?}");
        let (error, remedy) = (answer.json()["error"].to_string(), answer.json()["remedy"].to_string());
        assert!([exp, "1800001000", "1000 s"].iter().all(|named| error.contains(named)), "{error}");
        assert!(remedy.contains("--longest-lifetime"), "{remedy}");
    }
    assert_eq!((client.protected("late", None), client.protected(JWT_TOO_LATE, None)), (200, 200));
    assert_eq!(stats(&server)["store_tokens"], 1);

    // The remedy in the answer works.
    server.end();
    let longer = ["--longest-lifetime", "5000", "--leeway", "0"];
    let server = Server::start(data.path(), &clock.arguments(&longer));
    let client = server.client();
    assert!(server.said().contains("each for 12 ticks of 100s, and the options ask for another"), "{}", server.said());
    assert_eq!(client.put(&path(JWT_TOO_LATE)).status, 201);
    clock.set(START + 999);
    assert_all_revoked(&client, &["longest".into(), JWT_TOO_LATE.into()]);
    clock.set(START + 1000);
    assert_eq!((client.protected("longest", None), client.protected(JWT_TOO_LATE, None)), (200, 401));

    // A filter that would forget one of the tokens too early is not used.
    server.end();
    let said = Server::fails(data.path(), &clock.arguments(&ARGUMENTS));
    assert!(said.contains("--longest-lifetime of 4000"), "{said}");
}

#[test]
fn what_is_no_expiry_is_told() {
    let (data, clock) = (data(), Clock::at(START));
    let server = Server::start(data.path(), &clock.arguments(&ARGUMENTS));
    let client = server.client();
    let long = " ".repeat(2000);
    for (path, body, named) in [
        ("/revoked/a?exp=tomorrow", "", "\"tomorrow\""),
        ("/revoked/a?expires=1800000100", "", "expires=1800000100"),
        ("/revoked/a", "exp=1800000100", "{\"exp\": SECONDS}"),
        ("/revoked/a?exp=1800000100", "{\"exp\": 1800000200}", "1800000100 in the query and 1800000200 in the body"),
        ("/revoked/a", &long, "1024 bytes"),
        (&path(JWT_WITHOUT_A_NUMBER), "", "\"soon\""),
    ] {
        let answer = client.put_body(path, body);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.json()["error"].as_str().unwrap().contains(named), "{answer:?}");
    }
    assert_eq!(client.protected("a", None), 200);
}

#[test]
fn a_revocation_is_made_longer_and_never_shorter() {
    let (data, clock) = (data(), Clock::at(START));
    let server = Server::start(data.path(), &clock.arguments(&ARGUMENTS));
    let client = server.client();
    for (seconds, status, holds) in [(250, 201, 250), (850, 201, 850), (850, 200, 850), (450, 200, 850), (0, 200, 850)]
    {
        let answer = client.put(&until("token", seconds));
        assert_eq!(
            (answer.status, &answer.json()["until"]),
            (status, &(START + holds).into()),
            "{seconds}: {answer:?}"
        );
        assert_eq!(answer.json()["revoked"], true);
    }
    // A token of unknown expiry was issued before it was first revoked. So it lives no longer than that answer said.
    assert_eq!(client.put(&path("unknown")).json()["until"], START + 1000);
    clock.set(START + 10);
    for (token, holds) in [("unknown", 1000), ("token", 850)] {
        let answer = client.put(&path(token));
        assert_eq!((answer.status, &answer.json()["until"]), (200, &(START + holds).into()), "{answer:?}");
        assert_eq!(client.bulk(token)["inserted"], 0);
    }
    assert_eq!(client.delete(&path("unknown")).status, 204);
    // If somebody gives a token a shorter time than its claim, the claim holds.
    assert_eq!(client.put(&until(JWT_UNTIL_250, 100)).json()["until"], START + 250);
    let lines = format!("many {0}\nmany {1}\nmany {0}\ntoken {0}", START + 300, START + 600);
    assert_eq!(client.bulk(&lines)["inserted"], 2, "once, and once for longer");
    assert_eq!(client.get(&path("many")).json()["until"], START + 600);
    assert_eq!(stats(&server)["revoked"]["len"], 3, "the entries with the earlier ends have gone");

    clock.set(START + 600);
    assert_eq!(client.protected("token", None), 401);
    assert_eq!(client.protected("many", None), 200);
}

#[test]
fn a_token_is_reinstated_whatever_its_expiry() {
    let (data, clock) = (data(), Clock::at(START));
    let server = Server::start(data.path(), &clock.arguments(&ARGUMENTS));
    let client = server.client();
    let all = tokens("bad", 50);
    for (token, seconds) in all.iter().zip((20..).step_by(20)) {
        assert_eq!(client.put(&until(token, seconds)).status, 201);
    }
    assert_eq!(stats(&server)["revoked"]["len"], 50);
    for token in &all {
        assert_eq!(client.delete(&path(token)).status, 204);
        assert_eq!(client.protected(token, None), 200);
    }
    let figures = stats(&server);
    assert_eq!((&figures["revoked"]["len"], &figures["store_tokens"]), (&0.into(), &0.into()), "each has left both");

    assert_eq!(client.put(&until("bad-0", 120)).status, 201);
    clock.set(START + 120);
    assert_eq!(client.delete(&path("bad-0")).status, 404, "it is no longer revoked");
    assert_eq!(client.put(&until("bad-0", 500)).status, 201, "revoked anew");
    assert_eq!(client.protected("bad-0", None), 401);
}

#[test]
fn while_the_server_is_off_the_clock_goes_on() {
    let (data, clock) = (data(), Clock::at(START));
    let arguments = clock.arguments(&ARGUMENTS);
    let server = Server::start(data.path(), &arguments);
    let client = server.client();
    for (token, seconds) in [("short", 250), ("long", 900)] {
        assert_eq!(client.put(&until(token, seconds)).status, 201);
    }
    server.end();

    clock.set(START + 300);
    let server = Server::start(data.path(), &arguments);
    let client = server.client();
    assert!(server.said().contains("revoked tokens: loaded from"), "{}", server.said());
    assert!(server.said().contains("revoked tokens: 1 of"), "{}", server.said());
    assert_eq!((client.protected("short", None), client.protected("long", None)), (200, 401));
    assert_eq!(stats(&server)["revoked_live"], 1);
    // These are not in the snapshot and come from the store.
    for (token, seconds) in [("short-too", 500), ("longer", 1100)] {
        assert_eq!(client.put(&until(token, seconds)).status, 201);
    }
    server.kill();

    clock.set(START + 900);
    let server = Server::start(data.path(), &arguments);
    let client = server.client();
    assert!(server.said().contains("and 2 revoked since"), "{}", server.said());
    assert_eq!(stats(&server)["revoked_live"], 1);
    for (token, status) in [("short", 200), ("long", 200), ("short-too", 200), ("longer", 401)] {
        assert_eq!(client.protected(token, None), status, "{token}");
    }
    // A loaded token can be removed: it has the end that the store says.
    assert_eq!(client.delete(&path("longer")).status, 204);
    assert_eq!(stats(&server)["revoked_live"], 0);
}

#[test]
fn the_store_forgets_expired_tokens_an_hour_later() {
    let (data, clock) = (data(), Clock::at(START));
    let arguments = clock.arguments(&["--longest-lifetime", "86400", "--leeway", "0", "--ticks", "864"]);
    let server = Server::start(data.path(), &arguments);
    // More than one order forgets.
    let mut lines = tokens("short", 10_000).join(&format!(" {}\n", START + 100));
    lines += &format!(" {0}\nlong {1}\nextended {0}\nextended {1}", START + 100, START + 50_000);
    assert_eq!(server.client().bulk(&lines)["inserted"], 10_003);
    server.end();

    clock.set(START + 3000);
    let server = Server::start(data.path(), &arguments);
    assert_eq!(stats(&server)["revoked_live"], 2);
    assert_eq!(stats(&server)["store_tokens"], 10_002);
    server.end();

    clock.set(START + 4000);
    let server = Server::start(data.path(), &arguments);
    wait_for("the store to forget", || stats(&server)["store_tokens"] == 2);
    wait_for("the count", || stats(&server)["store_forgotten"] == 10_000);
    assert_all_revoked(&server.client(), &["long".into(), "extended".into()]);
    assert_eq!(server.client().put(&until("short-0", 9000)).status, 201);
    assert_all_revoked(&server.client(), &["short-0".into()]);
}

#[test]
fn a_bulk_load_takes_expiries() {
    let (data, clock) = (data(), Clock::at(START));
    let server = Server::start(data.path(), &clock.arguments(&ARGUMENTS));
    let client = server.client();
    let lines =
        format!("told {}\n{JWT_UNTIL_250}\nunknown\ngone {}\n  spaced \t {} \r\n", START + 250, START, START + 250);
    let job = client.bulk(&lines);
    assert_eq!((&job["done"], &job["inserted"], &job["expired"]), (&5.into(), &4.into(), &1.into()), "{job}");
    clock.set(START + 249);
    assert_all_revoked(&client, &["told", JWT_UNTIL_250, "unknown", "spaced"].map(str::to_owned));
    clock.set(START + 250);
    for (token, status) in [("told", 200), (JWT_UNTIL_250, 200), ("spaced", 200), ("unknown", 401), ("gone", 200)] {
        assert_eq!(client.protected(token, None), status, "{token}");
    }
    for (line, named) in [("late 1900000000", "1900000000"), ("odd tomorrow", "\"tomorrow\"")] {
        let job = client.bulk(&format!("fine\n{line}\nnever looked at"));
        assert_eq!((&job["state"], &job["done"]), (&"stopped".into(), &1.into()), "{job}");
        let error = job["error"].as_str().unwrap();
        assert!(error.starts_with("line 2: ") && error.contains(named), "{job}");
    }
}

#[test]
fn the_metrics_page_has_live_and_expired_tokens() {
    let (data, clock) = (data(), Clock::at(START));
    let server = Server::start(data.path(), &clock.arguments(&ARGUMENTS));
    let client = server.client();
    for (token, seconds) in [("a", 100), ("b", 100), ("c", 900)] {
        assert_eq!(client.put(&until(token, seconds)).status, 201);
    }
    let has = |lines: &[&str]| {
        let page = client.get("/metrics").body;
        lines.iter().all(|line| page.lines().any(|found| found == *line))
    };
    let (expired, live) = ("cuckoo_filter_expired_total{filter=\"revoked\"}", "web_server_revoked_live");
    assert!(has(&[&format!("{expired} 0"), &format!("{live} 3"), "web_server_revoked_unswept 0"]));
    clock.set(START + 100);
    wait_for("two of three to expire", || has(&[&format!("{expired} 2"), &format!("{live} 1")]));
    wait_for("the end of the sweep", || has(&["web_server_revoked_unswept 0", "web_server_revoked_unswept_ticks 0"]));
    assert!(has(&["web_server_store_tokens 3", "web_server_store_forgotten_total 0"]));
}
