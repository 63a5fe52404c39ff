"""English names of the language and currency codes in the source of the geography graph.

Codes are ISO 639-1 (one 639-3) and ISO 4217. A code that is missing here is a defect of the
source; `geography` drops and counts it.
"""

from __future__ import annotations


def _table(text: str) -> dict[str, str]:
    """Names by code, from a text of entries `code name` separated by `|`."""
    entries = (entry.split(maxsplit=1) for entry in text.split("|"))
    return {code: " ".join(name.split()) for code, name in entries}


LANGUAGES = _table(
    """
af Afrikaans | am Amharic | ar Arabic | ay Aymara | az Azerbaijani | be Belarusian |
bg Bulgarian | bi Bislama | bn Bengali | bs Bosnian | ca Catalan | ch Chamorro | cnr Montenegrin
| cs Czech | da Danish | de German | dv Dhivehi | dz Dzongkha | el Greek | en English |
es Spanish | et Estonian | fa Persian | ff Fula | fi Finnish | fj Fijian | fo Faroese |
fr French | ga Irish | gn Guarani | gv Manx | he Hebrew | hi Hindi | hr Croatian |
ht Haitian Creole | hu Hungarian | hy Armenian | id Indonesian | is Icelandic | it Italian |
ja Japanese | ka Georgian | kg Kongo | kk Kazakh | kl Greenlandic | km Khmer | ko Korean |
ku Kurdish | ky Kyrgyz | la Latin | lb Luxembourgish | ln Lingala | lo Lao | lt Lithuanian |
lu Luba-Katanga | lv Latvian | mg Malagasy | mh Marshallese | mi Maori | mk Macedonian |
mn Mongolian | ms Malay | mt Maltese | my Burmese | na Nauruan | nb Norwegian Bokmål |
nd North Ndebele | ne Nepali | nl Dutch | nn Norwegian Nynorsk | no Norwegian | nr South Ndebele
| ny Chichewa | oc Occitan | pa Punjabi | pl Polish | ps Pashto | pt Portuguese | qu Quechua |
rn Kirundi | ro Romanian | ru Russian | rw Kinyarwanda | sg Sango | si Sinhala | sk Slovak |
sl Slovenian | sm Samoan | sn Shona | so Somali | sq Albanian | sr Serbian | ss Swati | st Sotho
| sv Swedish | sw Swahili | ta Tamil | tg Tajik | th Thai | ti Tigrinya | tk Turkmen | tn Tswana
| to Tongan | tr Turkish | ts Tsonga | uk Ukrainian | ur Urdu | uz Uzbek | ve Venda |
vi Vietnamese | xh Xhosa | zh Chinese | zu Zulu
"""
)
"""Language names by code."""

CURRENCIES = _table(
    """
AED United Arab Emirates Dirham | AFN Afghan Afghani | ALL Albanian Lek | AMD Armenian Dram |
AOA Angolan Kwanza | ARS Argentine Peso | AUD Australian Dollar | AWG Aruban Florin |
AZN Azerbaijani Manat | BAM Bosnian Convertible Mark | BBD Barbadian Dollar |
BDT Bangladeshi Taka | BGN Bulgarian Lev | BHD Bahraini Dinar | BIF Burundian Franc |
BMD Bermudian Dollar | BND Brunei Dollar | BOB Boliviano | BRL Brazilian Real |
BSD Bahamian Dollar | BTN Bhutanese Ngultrum | BWP Botswana Pula | BYR Belarusian Ruble |
BZD Belize Dollar | CAD Canadian Dollar | CDF Congolese Franc | CHF Swiss Franc |
CLP Chilean Peso | CNY Chinese Yuan | COP Colombian Peso | CRC Costa Rican Colón |
CUC Cuban Convertible Peso | CUP Cuban Peso | CVE Cape Verdean Escudo | CZK Czech Koruna |
DJF Djiboutian Franc | DKK Danish Krone | DOP Dominican Peso | DZD Algerian Dinar |
EGP Egyptian Pound | ERN Eritrean Nakfa | ETB Ethiopian Birr | EUR Euro | FJD Fijian Dollar |
FKP Falkland Islands Pound | GBP Pound Sterling | GEL Georgian Lari | GHS Ghanaian Cedi |
GIP Gibraltar Pound | GMD Gambian Dalasi | GNF Guinean Franc | GTQ Guatemalan Quetzal |
GYD Guyanese Dollar | HKD Hong Kong Dollar | HNL Honduran Lempira | HRK Croatian Kuna |
HTG Haitian Gourde | HUF Hungarian Forint | IDR Indonesian Rupiah | ILS Israeli New Shekel |
INR Indian Rupee | IQD Iraqi Dinar | IRR Iranian Rial | ISK Icelandic Króna |
JMD Jamaican Dollar | JOD Jordanian Dinar | JPY Japanese Yen | KES Kenyan Shilling |
KGS Kyrgyzstani Som | KHR Cambodian Riel | KMF Comorian Franc | KPW North Korean Won |
KRW South Korean Won | KWD Kuwaiti Dinar | KYD Cayman Islands Dollar | KZT Kazakhstani Tenge |
LAK Lao Kip | LBP Lebanese Pound | LKR Sri Lankan Rupee | LRD Liberian Dollar | LSL Lesotho Loti
| LYD Libyan Dinar | MAD Moroccan Dirham | MDL Moldovan Leu | MGA Malagasy Ariary |
MKD Macedonian Denar | MMK Myanmar Kyat | MNT Mongolian Tögrög | MOP Macanese Pataca |
MRO Mauritanian Ouguiya | MUR Mauritian Rupee | MVR Maldivian Rufiyaa | MWK Malawian Kwacha |
MXN Mexican Peso | MYR Malaysian Ringgit | MZN Mozambican Metical | NAD Namibian Dollar |
NGN Nigerian Naira | NIO Nicaraguan Córdoba | NOK Norwegian Krone | NPR Nepalese Rupee |
NZD New Zealand Dollar | OMR Omani Rial | PAB Panamanian Balboa | PEN Peruvian Sol |
PGK Papua New Guinean Kina | PHP Philippine Peso | PKR Pakistani Rupee | PLN Polish Złoty |
PYG Paraguayan Guarani | QAR Qatari Riyal | RON Romanian Leu | RSD Serbian Dinar |
RUB Russian Ruble | RWF Rwandan Franc | SAR Saudi Riyal | SBD Solomon Islands Dollar |
SCR Seychellois Rupee | SDG Sudanese Pound | SEK Swedish Krona | SGD Singapore Dollar |
SHP Saint Helena Pound | SLL Sierra Leonean Leone | SOS Somali Shilling | SRD Surinamese Dollar
| SSP South Sudanese Pound | STD São Tomé and Príncipe Dobra | SVC Salvadoran Colón |
SYP Syrian Pound | SZL Swazi Lilangeni | THB Thai Baht | TJS Tajikistani Somoni |
TMT Turkmenistani Manat | TND Tunisian Dinar | TOP Tongan Pa'anga | TRY Turkish Lira |
TTD Trinidad and Tobago Dollar | TWD New Taiwan Dollar | TZS Tanzanian Shilling |
UAH Ukrainian Hryvnia | UGX Ugandan Shilling | USD US Dollar | UYU Uruguayan Peso |
UZS Uzbekistani Sum | VEF Venezuelan Bolívar | VND Vietnamese Dong | VUV Vanuatu Vatu |
WST Samoan Tala | XAF Central African CFA Franc | XCD East Caribbean Dollar |
XOF West African CFA Franc | XPF CFP Franc | YER Yemeni Rial | ZAR South African Rand |
ZMK Zambian Kwacha
"""
)
"""Names of currencies that people pay with, by code; funds and units of account are left out."""
