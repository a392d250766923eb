//! A real Apache httpd as a member.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use crate::ports::Lease;
use crate::process::Process;
use crate::temp::TempDir;
use crate::tools;

/// Debian's folder of modules.
const MODULES: &str = "/usr/lib/apache2/modules";

/// Starts Apache httpd on a leased port. Its files are in `folder`, which the server's user may write. It loads these
/// modules in addition to the ones that every server needs. `more` is added to its configuration.
pub fn start(lease: &Lease, folder: &TempDir, modules: &[&str], more: &str) -> Process {
    let at = folder.path().display();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("its own folder");
    let listen = lease.address();
    let modules: String = ["mpm_event", "authz_core"]
        .iter()
        .chain(modules)
        .map(|module| format!("LoadModule {module}_module {MODULES}/mod_{module}.so\n"))
        .collect();
    let text = format!(
        "ServerName member\nListen {listen}\nPidFile {at}/apache.pid\nDefaultRuntimeDir {at}\n\
         ErrorLog {at}/error.log\nLogLevel crit\nUser #65534\nGroup #65534\nDocumentRoot {at}\n\
         MaxKeepAliveRequests 0\n{modules}{more}\n"
    );
    let file = folder.write("apache.conf", text);
    let program = tools::find("apache2").expect("apache2");
    // Runs as one process, because child processes would survive a killed parent.
    let words = ["-X", "-d", &at.to_string(), "-f", &file.to_string_lossy()];
    let mut process = Process::start(&program, &words, &folder.path().join("output.log"));
    process.wait_until_listening(&[listen]);
    process
}
