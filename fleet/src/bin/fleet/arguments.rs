//! The command line of a node.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fleet::{Settings, time};

/// Refuses revoked tokens, as all nodes of the fleet do.
///
/// Durations are seconds, or such as 250ms, 10min or 1day. Prints the addresses it listens on to standard output,
/// everything else to standard error. Ends with status 0 after SIGTERM or ctrl-c, with 1 if something failed, and with 2
/// for bad arguments.
#[derive(Clone, Debug, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    pub(crate) listen: SocketAddr,

    /// Where administrators reach the routes below /revoked [default: where all others are]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) admin_listen: Option<SocketAddr>,

    #[command(flatten)]
    settings: Settings,

    /// The name of this node, for logs [default: the address]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,

    /// What administrators send as `Authorization: Bearer TOKEN` to the routes below /revoked. Without it they are open,
    /// on a loopback address only
    #[arg(long, value_name = "TOKEN", env = "FLEET_ADMIN_TOKEN", hide_env_values = true)]
    admin_token: Option<String>,

    /// A file with such tokens, one a line. To replace a token, restart the nodes, one at a time, with both in the file
    #[arg(long, value_name = "FILE", conflicts_with = "admin_token")]
    admin_tokens: Option<PathBuf>,

    /// The secret key of the fleet, the same on all nodes: 32 hexadecimal digits, such as `fleet key` prints
    #[arg(long, value_name = "HEX", env = "FLEET_KEY", hide_env_values = true, conflicts_with = "key_file",
          value_parser = key)]
    key: Option<[u8; 16]>,

    /// A file with that key
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// After SIGTERM, for how long connections are still taken while /healthz says 503. Longer than the load balancer needs
    /// to notice
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = time)]
    pub(crate) drain: Duration,

    /// When a connection that sends nothing is closed. Longer than the load balancer keeps idle connections
    #[arg(long, value_name = "TIME", default_value = "75", value_parser = time)]
    pub(crate) idle: Duration,

    /// Log in JSON, one object a line
    #[arg(long)]
    pub(crate) log_json: bool,
}

impl Arguments {
    pub(crate) fn settings(&self) -> Result<Settings, String> {
        let address = self.admin_listen.unwrap_or(self.listen);
        if self.admin_tokens()?.is_empty() && !address.ip().is_loopback() {
            return Err(format!(
                "{address} can be reached from other machines, and without an administrators' token anyone who reaches \
                 the node may revoke and restore tokens; set FLEET_ADMIN_TOKEN, or give --admin-tokens FILE, or \
                 --admin-listen 127.0.0.1:PORT"
            ));
        }
        for (name, given, most) in [("--idle", self.idle, 3600), ("--drain", self.drain, 600)] {
            if given > Duration::from_secs(most) || (name == "--idle" && given < Duration::from_millis(100)) {
                return Err(format!("{name} is {given:?}; give {most} s at most, and 100 ms at least for --idle"));
            }
        }
        let key = match (self.key, &self.key_file) {
            (Some(key), _) => key,
            (None, Some(path)) => key(read(path)?.trim()).map_err(|error| format!("{}: {error}", path.display()))?,
            (None, None) => {
                return Err(
                    "there is no key, and all nodes of a fleet need the same secret one; make one with `fleet \
                            key`, and set FLEET_KEY to it, or give --key-file FILE"
                        .into(),
                );
            }
        };
        let node = self.node.clone().unwrap_or_else(|| self.listen.to_string());
        let settings = Settings { node, key, ..self.settings.clone() };
        settings.check().map(|()| settings)
    }

    /// The administrators' tokens, as they are now.
    pub(crate) fn admin_tokens(&self) -> Result<Vec<String>, String> {
        let Some(path) = &self.admin_tokens else { return Ok(self.admin_token.iter().cloned().collect()) };
        let text = read(path)?;
        let tokens: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        if tokens.is_empty() { Err(format!("{} has no token", path.display())) } else { Ok(tokens) }
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("can't read {}: {error}", path.display()))
}

/// A new key.
pub(crate) fn new_key() -> Result<String, String> {
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| format!("the system gives no random bytes: {error}"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(key)))
}

fn key(text: &str) -> Result<[u8; 16], String> {
    let is_hex = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let key = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
    key.map(u128::to_be_bytes)
        .ok_or_else(|| format!("give 32 hexadecimal digits; this has {} characters", text.chars().count()))
}
