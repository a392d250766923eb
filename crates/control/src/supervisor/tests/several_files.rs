//! A reload of a configuration in several files.

use super::*;

#[tokio::test]
async fn a_reload_reads_all_files() {
    let (events, _) = Captured::new();
    let files = Files::new("several");
    let (one, two) = (member("one").await, member("two").await);
    let listen = [free_port(), free_port()];
    let folder = files.0.join("conf.d");
    std::fs::create_dir_all(&folder).unwrap();
    let application = |name: &str, listen: u16, member: SocketAddr| {
        let text = format!(
            "virtual_servers: {{ {name}: {{ listen: 127.0.0.1:{listen}, pool: {name} }} }}\n\
             pools: {{ {name}: {{ members: [ {member} ] }} }}\n"
        );
        std::fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
    };
    application("a", listen[0], one);
    let file = files.config("include: [ conf.d ]\nlog: { access: { format: \"off\" } }\n");
    let mut supervisor = Supervisor::start(&file, NameServers::System, events).await.unwrap();
    assert!(ask(socket(listen[0]), "/").await.ends_with("one"));
    // A new file in the directory.
    application("b", listen[1], two);
    assert!(supervisor.reload().await);
    assert!(ask(socket(listen[1]), "/").await.ends_with("two"));
    // An error in one of the files is reported with the file's name, and changes nothing.
    application("a", listen[1], one);
    assert!(!supervisor.reload().await);
    let report = supervisor.observed.reloads.report(2).unwrap();
    let told = format!("{}:1:", folder.join("b.yaml").display());
    assert!(report.diagnostics.starts_with(&told), "{}", report.diagnostics);
    assert!(ask(socket(listen[0]), "/").await.ends_with("one"));
    // The contents of a removed file are removed from the configuration.
    std::fs::remove_file(folder.join("b.yaml")).unwrap();
    application("a", listen[0], two);
    assert!(supervisor.reload().await);
    assert!(ask(socket(listen[0]), "/").await.ends_with("two"));
    until_refused(socket(listen[1])).await;
    supervisor.stop().await;
    supervisor.finish();
}
