//! Values of Cookie fields.

/// The values. The first ones contain tokens for which the cookie fuzz target searches.
pub const FIELDS: [&[u8]; 15] = [
    b"lang=en; WEIR=5_kQtrsSeiwvBCh6L54GqPLplvtM1g; theme=dark",
    b"WEIR=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.5_kQtrsSeiwvBCh6L54GqPLplvtM1g.BBBBBBBBBBBBBBBBBBBBBB",
    b"WEIR-5_kQtrsS=eiwvBCh6L54GqPLplvtM1g; OLD=5_kQtrsSeiwvBCh6L54GqPLplvtM1g",
    b"lang=en; WEIR=eiwvBCh6L54GqPLplvtM1g; theme=dark",
    b"WEIR=eiwvBCh6L54GqPLplvtM1h",
    b"WEIR=a; WEIR=eiwvBCh6L54GqPLplvtM1g",
    b"a=b;c=d",
    b" a = b ;\tc\t=\td\t",
    b"a=\"b;c=d\"; e",
    b"=a; b=; c",
    b";;; a=b;; ;",
    b"a=b=c==",
    b"a=1; a=2; A=3",
    b"$Version=1; a=b; $Path=/",
    b"a=b, c=d",
];
