//! Users, passwords and rights of etcd, and how they are changed while a fleet runs.

use super::*;

fn login(ours: &Settings, user: &str, passwords: [Option<&str>; 2]) -> Settings {
    let [password, other_password] = passwords.map(|password| password.map(str::to_owned));
    Settings { etcd: Etcd { user: Some(user.into()), password, other_password, ..ours.etcd.clone() }, ..ours.clone() }
}

/// Adds a user with a role of the same name, which may do this.
fn add_user(cluster: &Cluster, user: &str, rights: &[[&str; 3]]) {
    cluster.ctl(&["user", "add", &format!("{user}:secret")]);
    cluster.ctl(&["role", "add", user]);
    for [prefix, right, key] in rights {
        cluster.ctl(&["role", "grant-permission", prefix, user, right, key]);
    }
    cluster.ctl(&["user", "grant-role", user, user]);
}

fn enable(cluster: &Cluster) {
    cluster.ctl(&["user", "add", "root:secret"]);
    cluster.ctl(&["user", "grant-role", "root", "root"]);
    cluster.ctl(&["auth", "enable"]);
}

const ALL: &[[&str; 3]] = &[["--prefix=true", "readwrite", "revoked/"]];

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_a_right_is_found_at_the_start() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let ours = settings(&cluster.urls(0));
    drop(start(ours.clone()).await);
    add_user(&cluster, "all", ALL);
    add_user(&cluster, "reads", &[["--prefix=true", "read", "revoked/"]]);
    add_user(
        &cluster,
        "half",
        &[["--prefix=true", "read", "revoked/"], ["--prefix=false", "readwrite", "revoked/agreement"]],
    );
    enable(&cluster);
    let login = |user: &str, password: &str| login(&ours, user, [Some(password), None]);
    for settings in [login("reads", "secret"), login("half", "secret"), login("all", "wrong"), ours.clone()] {
        let error = Node::start(settings).await.unwrap_err();
        assert!(error.contains("has refused this"), "{error}");
    }
    let node = start(login("all", "secret")).await;
    revoke(&node, "alice").await;
    assert!(answer(&node, "alice").await);
}

/// Etcd is told first, or the nodes are. No node is ever restarted at the same time as another one.
#[tokio::test(flavor = "multi_thread")]
async fn authentication_is_turned_on_and_off_and_a_password_changed_while_the_fleet_runs() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let ours = settings(&cluster.urls(0));
    add_user(&cluster, "fleet", ALL);
    let root = |arguments: &[&str]| cluster.ctl(&[&["--user", "root:secret"], arguments].concat());
    // The nodes get the user first, while authentication is off.
    let (one, other) = (start(login(&ours, "fleet", [Some("secret"), None])).await, start(ours.clone()).await);
    revoke(&one, "alice").await;
    drop(other);
    let other = Arc::new(start(login(&ours, "fleet", [Some("secret"), None])).await);
    let asking = Asking::start(&other, "alice");
    let check = async |token: &str| {
        for node in [&one, &*other] {
            ready(node).await;
            assert!(answer(node, "alice").await && !answer(node, "bob").await);
            revoke(node, token).await;
        }
        assert_eq!([&one, &*other].map(|node| node.shared().tallies.joins.load(Ordering::SeqCst)), [1, 1]);
    };
    enable(&cluster);
    check("after it was turned on").await;
    root(&["auth", "disable"]);
    check("after it was turned off").await;
    cluster.ctl(&["auth", "enable"]);
    check("after it was turned on again").await;

    // The password: a node that has both does not notice, whichever is first.
    drop(one);
    let one = start(login(&ours, "fleet", [Some("secret"), Some("new")])).await;
    let third = start(login(&ours, "fleet", [Some("new"), Some("secret")])).await;
    change_password(&cluster, "fleet", "new");
    for node in [&one, &third] {
        revoke(node, "carol").await;
        ready(node).await;
        assert!(answer(node, "carol").await);
    }
    // A node that has only the old one says what is wrong, and continues when the password is right again.
    is_in(&other, State::Refused).await;
    assert!(other.health().why.contains("FLEET_ETCD_PASSWORD"), "{:?}", other.health());
    change_password(&cluster, "fleet", "secret");
    ready(&other).await;
    assert!(answer(&other, "carol").await);
    assert_eq!(other.shared().tallies.joins.load(Ordering::SeqCst), 1, "it goes on with its filter");
    asking.check().await;

    // A node without a user that started before authentication was turned on.
    root(&["auth", "disable"]);
    let without = start(ours.clone()).await;
    cluster.ctl(&["auth", "enable"]);
    is_in(&without, State::Refused).await;
    assert!(without.health().why.contains("FLEET_ETCD_USER"), "{:?}", without.health());
    ready(&one).await;
    root(&["auth", "disable"]);
    ready(&without).await;
    assert!(answer(&without, "carol").await);
}

fn change_password(cluster: &Cluster, user: &str, password: &str) {
    let arguments = ["--user", "root:secret", "user", "passwd", user, "--interactive=false"];
    cluster.ctl_with(&arguments, format!("{password}\n").as_bytes());
}
