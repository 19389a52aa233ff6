//! Where the cluster is.

use std::fmt;
use std::path::PathBuf;

/// Where the cluster is, and how to log in.
#[derive(Clone, Default, clap::Args)]
pub struct Etcd {
    /// The members of etcd: `http://HOST:PORT` or `https://HOST:PORT`, separated by commas
    #[arg(
        id = "etcd",
        long,
        value_name = "URLS",
        env = "FLEET_ETCD",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:2379"
    )]
    pub members: Vec<String>,

    /// The user of etcd, with the password in FLEET_ETCD_PASSWORD
    #[arg(id = "etcd-user", long, value_name = "NAME", env = "FLEET_ETCD_USER", requires = "etcd-password")]
    pub user: Option<String>,

    /// The password of that user
    // Every user of the machine can read the command line.
    #[arg(id = "etcd-password", long, env = "FLEET_ETCD_PASSWORD", hide = true, hide_env_values = true)]
    pub password: Option<String>,

    /// A second password, which is tried when etcd rejects the first: for a change of the password, one node at a time
    #[arg(id = "etcd-other-password", long, env = "FLEET_ETCD_OTHER_PASSWORD", hide = true, hide_env_values = true)]
    pub other_password: Option<String>,

    /// The authority of the members' certificates, in a PEM file, instead of those that the system trusts
    #[arg(id = "etcd-authority", long, value_name = "FILE")]
    pub authority: Option<PathBuf>,

    /// The certificate that the node shows to etcd, in a PEM file
    #[arg(id = "etcd-certificate", long, value_name = "FILE", requires = "etcd-key")]
    pub certificate: Option<PathBuf>,

    /// The key of that certificate, in a PEM file
    #[arg(id = "etcd-key", long, value_name = "FILE", requires = "etcd-certificate")]
    pub key: Option<PathBuf>,
}

impl Etcd {
    /// Members at these addresses, separated by commas.
    pub fn new(members: &str) -> Self {
        Self { members: members.split(',').map(str::to_owned).collect(), ..Self::default() }
    }
}

/// Leaves out the password.
impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd").field("members", &self.members).finish_non_exhaustive()
    }
}
